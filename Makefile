# mcpledger: what a developer and CI run. "make verify" is the whole of it.

GO       ?= go
FUZZTIME ?= 20000x
SOAK     ?= 1h

GOLANGCI    := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

.PHONY: help
help: ## List what can be made
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  %-10s %s\n", $$1, $$2 }'

.PHONY: fetch
fetch: ## Fetch what the checks need from the network
	$(GO) mod download
	$(GO) run $(GOLANGCI) version
	$(GO) run $(GOVULNCHECK) -version

.PHONY: build
build: ## Build bin/mcpledger
	$(GO) build -trimpath -o bin/mcpledger ./cmd/server

.PHONY: test
test: ## Run the tests
	$(GO) test ./...

# The time limits below are for tests that hang: they are many times what a machine needs
# that has little to give.
.PHONY: race
race: ## Run the tests under the race detector
	$(GO) test -race -timeout 2h ./...

# Fuzzing is bounded by executions: up to Go 1.26 a bound in time fails a target now and
# then with "context deadline exceeded" (go.dev/issue/75804).
.PHONY: fuzz
fuzz: ## Fuzz each target for FUZZTIME (20000x)
	@grep -rEo '^func Fuzz[A-Za-z0-9_]+' --include='*_test.go' . | while IFS=: read -r file func; do \
		echo "fuzz $${func#func } in $$(dirname "$$file")"; \
		$(GO) test "$$(dirname "$$file")" -run '^$$' -fuzz "^$${func#func }\$$" \
			-fuzztime $(FUZZTIME) -fuzzminimizetime 100x; \
	done

.PHONY: lint
lint: ## Check format, vet and the lint rules
	@unformatted=$$(gofmt -l .); \
	if [[ -n "$$unformatted" ]]; then echo "not formatted, run \"make fmt\":"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) vet -tags e2e,soak ./cmd/server
	$(GO) run $(GOLANGCI) run ./...

.PHONY: fmt
fmt: ## Format the source
	gofmt -w .

.PHONY: generate
generate: ## Write the generated code anew
	$(GO) generate ./...

.PHONY: clean-tree
clean-tree: ## Check that tidy and generate change nothing
	$(GO) mod tidy -diff
	@before=$$(git diff HEAD | sha256sum); \
	$(GO) generate ./...; \
	if [[ "$$before" != "$$(git diff HEAD | sha256sum)" ]]; then \
		git --no-pager diff --stat; echo "generated code was out of date, commit what \"make generate\" wrote"; exit 1; \
	fi

.PHONY: vuln
vuln: ## Look for known vulnerabilities
	$(GO) run $(GOVULNCHECK) ./...

.PHONY: verify
verify: clean-tree lint race fuzz vuln ## Everything that must hold before a change lands

.PHONY: run
run: ## Run the service with the sample fleet
	$(GO) run ./cmd/server

.PHONY: bench
bench: ## Run the benchmarks against their floors
	$(GO) test ./... -run '^$$' -bench . -benchmem

.PHONY: soak
soak: ## Run an hour at 20 times the speed (SOAK=2m for less) and tell whether all stays flat
	$(GO) test -tags soak -count=1 -timeout 0 -run '^TestSoak$$' -v ./cmd/server -soak $(SOAK)

.PHONY: e2e
e2e: ## Run against real servers from npm and a real browser
	$(GO) test -tags e2e -count=1 -timeout 1h -run E2E -v ./cmd/server
