"""The kernel itself, or its installation into the Python that runs this.

    python -m cling_kernel install [FOLDER …]   so that Jupyter lists "C++20 (Cling)"; cells include from these folders
    python -m cling_kernel -f FILE              what Jupyter starts
"""
import json
import sys
import tempfile
from pathlib import Path

from .interpreter import INCLUDE_PATH


def install(folders):
    from jupyter_client.kernelspec import KernelSpecManager

    specification = {
        "argv": [sys.executable, "-m", "cling_kernel", "-f", "{connection_file}", "--log-level=ERROR"],
        "display_name": "C++20 (Cling)",
        "language": "c++",
        "interrupt_mode": "signal",
        "env": {
            "PYTHONPATH": str(Path(__file__).resolve().parent.parent),
            INCLUDE_PATH: ":".join(str(Path(folder).resolve()) for folder in folders),
        },
    }
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "kernel.json").write_text(json.dumps(specification, indent=1))
        print(KernelSpecManager().install_kernel_spec(folder, "cling", prefix=sys.prefix))


def main():
    if sys.argv[1:2] == ["install"]:
        return install(sys.argv[2:])
    from ipykernel.kernelapp import IPKernelApp

    from .kernel import ClingKernel

    IPKernelApp.launch_instance(kernel_class=ClingKernel, capture_fd_output=False)


main()
