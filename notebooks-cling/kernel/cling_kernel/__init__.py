"""A Jupyter kernel for C++20: Cling, by the package cppyy, with cells that hold whatever C++ a file may hold."""
