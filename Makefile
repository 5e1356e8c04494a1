# Short names for what is done often. `make help` lists them.
.PHONY: help demo test kill check bench model doc

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## classify handwritten digits privately, two processes on this machine
	cargo run --release -p volvelle-cli -- demo

test: ## every test
	cargo test --workspace --doc && cargo test --workspace --lib --bins --tests

kill: ## two processes with stores, one of them killed 200 times
	cargo test -p volvelle-lut --test store_kill -- --ignored --nocapture two_hundred

check: ## everything the continuous integration checks
	.ci/run

bench: ## the main figures, a line a case
	cargo build --release -p volvelle-cli
	target/release/volvelle bench ot --kind cot
	target/release/volvelle bench lut --protocol doubling --entries 256 --bits 64
	target/release/volvelle bench lut --protocol rotation --entries 256 --bits 64
	target/release/volvelle bench compare --variant cheetah --bits 32

model: ## train the demo's model again (Python 3.11, in .venv)
	python3 -m venv .venv
	.venv/bin/pip install --quiet -r tools/requirements.txt
	.venv/bin/python tools/train_digits.py

doc: ## the libraries' documentation
	cargo doc --workspace --no-deps
