# `make` alone lists what there is. Everything a command needs beyond Rust, Python 3, Node and git is set up in .deps/.

.PHONY: help try test test-long test-nvim test-agents test-model lint build bench bench-terminals bench-chat picture recording clean

help:
	@echo 'make try                        build, and open Neovim with an agent in a sample project'
	@echo 'make test                       run every test (ARGS=… goes to cargo test)'
	@echo 'make test-long                   the property tests of changes and terminals: 100,000 cases each, 10,000 commands, 5,000 cases in Neovim'
	@echo 'make test-nvim VERSION=0.12.4   the same with that Neovim (0.10.4, 0.11.4, 0.12.4)'
	@echo 'make test-agents                drive the real agents (installs about 1 GB from npm)'
	@echo 'make test-model                 the command line and the built-in agent against a real model (builds llama.cpp, 15 min)'
	@echo 'make lint                       formatting, clippy, licences, help tags'
	@echo 'make build                      the release build of the helper'
	@echo 'make bench                      speed, side by side with the plainest possible plugin'
	@echo 'make bench-terminals            floods in terminals, beside :terminal'
	@echo 'make bench-chat                 speed of the command line, side by side with curl and true'
	@echo 'make picture                    doc/picture.svg, taken from a real session'
	@echo 'make recording                  doc/follow.svg, the same in motion: follow mode and a permission request'
	@echo 'make clean                      remove what these commands made'

try:
	@scripts/try

test:
	@scripts/test $(ARGS)

test-long:
	@PROPTEST_CASES=100000 cargo test --release --lib changes::
	@EDITOR_CASES=5000 scripts/test --test editor changes_random
	@PROPTEST_CASES=100000 cargo test --release --lib terminal::
	@AGENTCHAT_CYCLES=10000 cargo test --release --test terminal_cycles

test-nvim:
	@test -n '$(VERSION)' || { echo 'say which: make test-nvim VERSION=0.10.4' >&2; exit 1; }
	@scripts/test --version '$(VERSION)' $(ARGS)

test-agents: build
	@NVIM="$$(scripts/deps.py neovim)" && PYTHON="$$(scripts/deps.py python)" && AGENTCHAT_NVIM="$$NVIM" "$$PYTHON" tests/agents/run $(ARGS)

test-model: build
	@PYTHON="$$(scripts/deps.py python)" && "$$PYTHON" tests/model/run $(ARGS)

lint:
	@scripts/lint

build:
	@cargo build --release

bench: build
	@NVIM="$$(scripts/deps.py neovim)" && PYTHON="$$(scripts/deps.py python)" && AGENTCHAT_NVIM="$$NVIM" "$$PYTHON" benches/run $(ARGS)

bench-terminals: build
	@NVIM="$$(scripts/deps.py neovim)" && PYTHON="$$(scripts/deps.py python)" && AGENTCHAT_NVIM="$$NVIM" "$$PYTHON" benches/terminals $(ARGS)

bench-chat: build
	@benches/chat $(ARGS)

picture: build
	@NVIM="$$(scripts/deps.py neovim)" && PYTHON="$$(scripts/deps.py python)" && AGENTCHAT_NVIM="$$NVIM" "$$PYTHON" scripts/picture.py

recording: build
	@NVIM="$$(scripts/deps.py neovim)" && PYTHON="$$(scripts/deps.py python)" && AGENTCHAT_NVIM="$$NVIM" "$$PYTHON" scripts/recording.py

clean:
	@rm -rf .try .deps
	@cargo clean
