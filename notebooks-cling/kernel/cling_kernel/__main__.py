"""The kernel itself, or its installation into the Python that runs this.

    python -m cling_kernel install        so that Jupyter lists "C++20 (Cling)"
    python -m cling_kernel -f FILE        what Jupyter starts
"""
import json
import sys
import tempfile
from pathlib import Path


def install():
    from jupyter_client.kernelspec import KernelSpecManager

    specification = {
        "argv": [sys.executable, "-m", "cling_kernel", "-f", "{connection_file}"],
        "display_name": "C++20 (Cling)",
        "language": "c++",
        "interrupt_mode": "signal",
        "env": {"PYTHONPATH": str(Path(__file__).resolve().parent.parent)},
    }
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "kernel.json").write_text(json.dumps(specification, indent=1))
        print(KernelSpecManager().install_kernel_spec(folder, "cling", prefix=sys.prefix))


def main():
    if sys.argv[1:] == ["install"]:
        return install()
    from ipykernel.kernelapp import IPKernelApp

    from .kernel import ClingKernel

    IPKernelApp.launch_instance(kernel_class=ClingKernel, capture_fd_output=False)


main()
