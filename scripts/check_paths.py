#!/usr/bin/env python3
"""Fails when a tracked file names a path of the machine it was written on: the checkout, a home folder, a scratch root."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Top-level folders that documents and tests name for good reasons.
COMMON_ROOTS = {
    "bin", "boot", "dev", "etc", "home", "lib", "lib64", "media", "mnt", "nix", "opt", "private", "proc", "run", "sbin",
    "snap", "srv", "sys", "tmp", "usr", "var", "Applications", "Library", "System", "Users", "Volumes",
}  # fmt: skip
# The placeholder in recordings and examples.
PLACEHOLDER_USERS = {"user", "me", "you"}


def patterns():
    found = [re.escape(str(ROOT))]
    home = Path.home()
    for path in [ROOT, home]:
        if len(path.parts) > 1 and path.parts[1] not in COMMON_ROOTS:
            found.append(rf"(?<![\w.}}/$~-])/{re.escape(path.parts[1])}/")
    users = "|".join(PLACEHOLDER_USERS)
    found.append(rf"(?<![\w.])/(?:home|Users)/(?!(?:{users})\b)[a-z][\w-]*")
    return re.compile("|".join(found))


def main():
    pattern = patterns()
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True, cwd=ROOT, stdout=subprocess.PIPE,
    ).stdout  # fmt: skip
    faults = 0
    for name in listed.decode().split("\0"):
        path = ROOT / name
        if not name or not path.is_file():
            continue
        for number, line in enumerate(path.read_bytes().decode("utf-8", "replace").splitlines(), start=1):
            match = pattern.search(line)
            if match:
                faults += 1
                print(f"{name}:{number}: names a path of one machine: {match.group(0)}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
