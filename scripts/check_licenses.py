#!/usr/bin/env python3
"""Fails when a dependency's licence is neither permissive nor accepted below by the name of the package.

A licence expression is satisfied when one side of each `OR` is acceptable and both sides of each `AND` are.
"""

import json
import re
import subprocess
import sys

PERMISSIVE = {
    "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0",
    "CC0-1.0", "ISC", "MIT", "MIT-0", "Unicode-3.0", "Unlicense", "Zlib",
}  # fmt: skip

# What is accepted although it is not permissive, and what follows for whoever hands out binaries.
ACCEPTED = {
    "nvim-rs": ("LGPL-3.0", "a binary that contains it has to let its receiver relink it; see README.md, Licence"),
}


def host():
    output = subprocess.run(["rustc", "-vV"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return re.search(r"^host: (.+)$", output, re.MULTILINE).group(1)


def packages():
    command = ["cargo", "metadata", "--quiet", "--format-version", "1", "--locked", "--filter-platform", host()]
    metadata = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    used = {node["id"] for node in metadata["resolve"]["nodes"]}
    return [package for package in metadata["packages"] if package["id"] in used]


def acceptable(expression):
    """Whether a licence expression can be satisfied with permissive licences alone."""
    tokens = re.findall(r"\(|\)|[^\s()]+(?: WITH [^\s()]+)?", expression.replace("/", " OR "))
    position = 0

    def either():
        nonlocal position
        result = both()
        while position < len(tokens) and tokens[position] == "OR":
            position += 1
            result = both() or result
        return result

    def both():
        nonlocal position
        result = one()
        while position < len(tokens) and tokens[position] == "AND":
            position += 1
            result = one() and result
        return result

    def one():
        nonlocal position
        token = tokens[position]
        position += 1
        if token == "(":
            result = either()
            position += 1
            return result
        return token in PERMISSIVE

    return either()


def main():
    faults = []
    for package in packages():
        name, licence = package["name"], package["license"] or "no licence named"
        if acceptable(licence):
            continue
        accepted, consequence = ACCEPTED.get(name, (None, None))
        if licence == accepted:
            print(f"{name} {package['version']}: {licence}, accepted by name ({consequence})")
        else:
            faults.append(f"{name} {package['version']}: {licence}")
    for fault in faults:
        print(f"not permissive, and not accepted in scripts/check_licenses.py: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
