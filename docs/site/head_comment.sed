# A header's head comment, up to its first line of code, is what Doxygen says of the file.
1,/^[^/]/{
  /^\/\/ /s|<|\\<|g
  1s|^// |/// @head |
  s|^// |/// |
}
