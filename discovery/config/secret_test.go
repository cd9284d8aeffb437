package config_test

import (
	"strings"
	"testing"

	"mcpledger/discovery/config"
)

func TestOrdinaryTextStaysAsItIs(t *testing.T) {
	r := server(t, environ("USER", "alexander", "BASE", "https://api.example.com/v1"), `"command": "npx",
		"args": ["-y", "@acme/server@1.2.3", "--port", "8080", "--mode=production", "--key-file", "/etc/acme/tls.key", "/usr/local/bin"],
		"env": {"NODE_ENV": "production", "HOST": "localhost", "PORT": "8080", "BIN": "/usr/local/bin", "DEBUG": "true",
			"DB_HOST": "db.internal:5432", "URL": "${BASE}", "REGION": "us-east-1", "MODEL": "gpt-4o-mini", "ME": "${USER}",
			"LIMIT": "10000000", "GREETING": "hello there", "AUTH_FILE": "/home/kim/.auth.json", "IP": "127.0.0.1:9000", "DB_PASSWORD": "postgres", "DB": "postgres://postgres:postgres@db/x", "TLS_KEY": "certs/tls.key"},
		"headers": {"Accept": "application/json", "User-Agent": "acme/1.0"}`).Redactor
	for _, text := range []string{
		"production localhost 8080 /usr/local/bin true db.internal:5432 alexander gpt-4o-mini us-east-1 hello there",
		"npx @acme/server@1.2.3 --mode=production --key-file /etc/acme/tls.key /home/kim/.auth.json 127.0.0.1:9000 10000000 postgres certs/tls.key",
		"GET https://api.example.com/v1 application/json acme/1.0",
		`WWW-Authenticate: Bearer realm="acme", resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource"`,
		"Bearer authentication required; Basic authentication is off",
		"Bearer error=invalid_token",
		"token=missing key=primary_key token_count=123456",
		"sk-learn-based-classifier task-12345678901234567890",
		"npm_config_registry=https://registry.example.com npm_package_version=1",
		"ModuleNotFoundError: No module named 'mcp.server.fastmcp'",
		"Error: connect ECONNREFUSED 127.0.0.1:5432 at TCPConnectWrap.afterConnect [as oncomplete] (node:net:1606:16)",
		"git@github.com:acme/repo.git https://user@example.com/",
		"-----BEGIN CERTIFICATE-----\nMIIEabcd\n-----END CERTIFICATE-----",
	} {
		if got := r.String(text); got != text {
			t.Errorf("%s\nbecame %s", text, got)
		}
	}
}

func TestEveryPlaceInAnEntryThatHoldsASecretIsKnown(t *testing.T) {
	lookup := environ("VAR", "v4r-Secret-01", "MCPLEDGER_INPUT_PIN", "1npUt-Secret-02")
	for _, tt := range []struct{ fields, text, want string }{
		{`"command": "x", "env": {"API_KEY": "e7v-Secret-03"}`, "e7v-Secret-03", "«API_KEY»"},
		{`"command": "x", "env": {"DB_PASSWORD": "correcthorse"}`, "correcthorse", "«DB_PASSWORD»"},
		{`"command": "x", "env": {"X": "${VAR}"}`, "v4r-Secret-01", "«VAR»"},
		{`"command": "x", "env": {"X": "p-${VAR}-s"}`, "v4r-Secret-01", "«VAR»"},
		{`"command": "x", "args": ["${VAR}"]`, "v4r-Secret-01", "«VAR»"},
		{`"command": "x", "args": ["${input:pin}"]`, "1npUt-Secret-02", "«pin»"},
		{`"command": "x", "args": ["${NONE:-d3fault-Secret}"]`, "d3fault-Secret", "«NONE»"},
		{`"command": "x", "args": ["--api-key=4rg-Secret-04"]`, "4rg-Secret-04", "«api-key»"},
		{`"command": "x", "args": ["--access-token", "4rg-Secret-05"]`, "4rg-Secret-05", "«access-token»"},
		{`"command": "x", "args": ["--password", "justletters"]`, "justletters", "«password»"},
		{`"command": "docker", "args": ["run", "-e", "TOKEN=4rg-Secret-06", "i"]`, "4rg-Secret-06", "«TOKEN»"},
		{`"command": "x", "args": ["--header", "Authorization: Bearer h3ad-Secret-07"]`, "h3ad-Secret-07", "«Authorization»"},
		{`"command": "x", "args": ["postgres://app:dbp4ss-Secret@h/db"]`, "dbp4ss-Secret", "«url»"},
		{`"command": "x", "env": {"DATABASE_URL": "mysql://app:dbp4ss%2FSecret@h/db"}`, "dbp4ss/Secret", "«DATABASE_URL»"},
		{`"command": "x", "env": {"DSN": "Server=h;Password=dbp4ss-Secret;"}`, "dbp4ss-Secret", "«DSN»"},
		{`"command": "x", "env": {"HEADERS": "{\"Authorization\": \"Bearer js0n-Secret-08\"}"}`, "js0n-Secret-08", "«HEADERS»"},
		{`"command": "x", "env": {"PEM": "-----BEGIN X-----\nb0dy-of-a-secret-09-line\n-----END X-----"}`, "b0dy-of-a-secret-09-line", "«PEM»"},
		{`"url": "https://h/mcp?api_key=qu3ry-Secret-10"`, "qu3ry-Secret-10", "«api_key»"},
		{`"url": "https://h/mcp?qu3ry-Secret-11"`, "qu3ry-Secret-11", "«url»"},
		{`"url": "https://u:us3r-Secret-12@h/mcp"`, "us3r-Secret-12", "«url»"},
		{`"url": "https://h/s/p4th-Secret-1300001/mcp"`, "p4th-Secret-1300001", "«url»"},
		{`"url": "https://h/", "headers": {"Authorization": "Bearer h3ad-Secret-14"}`, "Bearer h3ad-Secret-14", "Bearer «authorization»"},
		{`"url": "https://h/", "headers": {"X-Acme": "h3ad-Secret-15"}`, "h3ad-Secret-15", "«x-acme»"},
		{`"url": "https://h/", "headers": {"Authorization": "Basic a2ltOmIkc2ljLVNlY3JldA=="}`, "b$sic-Secret", "«authorization»"},
		{`"url": "https://h/", "oauth": {"client_secret": "0auth-Secret-16"}`, "0auth-Secret-16", "«oauth»"},
	} {
		c := load(t, lookup, entry(tt.fields))
		s := c.Server("s")
		for what, r := range map[string]*config.Redactor{"own": s.Redactor, "merged": c.Redactor()} {
			if got := r.String("a " + tt.text + " b"); got != "a "+tt.want+" b" {
				t.Errorf("%s (%s): %s became %s", tt.fields, what, tt.text, got)
			}
		}
		if strings.Contains(string(s.Written), tt.text) {
			t.Errorf("the entry is shown as %s", s.Written)
		}
	}
}

func TestTheSecretsOfAnEnvFileAreKnown(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/own.env", "API_TOKEN=f1le-Secret-17")
	path := write(t, dir+"/mcp.json", entry(`"command": "x", "envFile": "own.env"`))
	c, err := config.Load(config.Options{Files: []string{path}, Key: testKey, LookupEnv: environ()})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Server("s").Redactor.String("f1le-Secret-17"); got != "«API_TOKEN»" {
		t.Errorf("got %s", got)
	}
}

// A variable that a process inherits is known to it, though no entry names its value.
func TestTheSecretsThatAProcessInheritsAreKnown(t *testing.T) {
	environ := func() []string {
		return []string{
			"ACME_SETTING=8f3c1d9e7b2a64", "ACME_TOKEN=7d1e9c4b8a2f63", "LS_COLORS=rs=0:di=01;34:ln=01;36",
			"HTTPS_PROXY=http://user:Pr0xy-Pass@proxy.example:3128", "MCPLEDGER_TOKEN=5b2a8f3c1d9e7b",
		}
	}
	const said = "8f3c1d9e7b2a64 7d1e9c4b8a2f63 rs=0:di=01;34:ln=01;36 Pr0xy-Pass 5b2a8f3c1d9e7b"
	for _, c := range []struct{ fields, want string }{
		{`"command": "x"`, "8f3c1d9e7b2a64 7d1e9c4b8a2f63 rs=0:di=01;34:ln=01;36 «HTTPS_PROXY» 5b2a8f3c1d9e7b"},
		{
			`"command": "x", "mcpledger": {"inherit_env": ["ACME_SETTING"]}`,
			"«ACME_SETTING» 7d1e9c4b8a2f63 rs=0:di=01;34:ln=01;36 «HTTPS_PROXY» 5b2a8f3c1d9e7b",
		},
		{
			`"command": "x", "mcpledger": {"inherit_env": true}`,
			"8f3c1d9e7b2a64 «ACME_TOKEN» rs=0:di=01;34:ln=01;36 «HTTPS_PROXY» 5b2a8f3c1d9e7b",
		},
		{`"url": "http://127.0.0.1:1/mcp"`, said},
	} {
		path := write(t, t.TempDir()+"/mcp.json", entry(c.fields))
		conf, err := config.Load(config.Options{Files: []string{path}, Key: testKey, Environ: environ})
		if err != nil {
			t.Fatal(err)
		}
		if got := conf.Server("s").Redactor.String(said); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.fields, got, c.want)
		}
	}
}

// Where a value stands tells more than how it looks, so the entry itself masks short
// secrets too, and keeps references, which say where a secret comes from.
func TestTheEntryIsShownWithoutItsSecrets(t *testing.T) {
	for _, tt := range []struct{ fields, want string }{
		{`"command": "x", "env": {"PASSWORD": "hunter", "PORT": "80", "KEY": "${K}", "MODE": "fast"}`,
			`{"command":"x","env":{"KEY":"${K}","MODE":"fast","PASSWORD":"«PASSWORD»","PORT":"80"}}`},
		{`"command": "x", "env": {"DB": "postgres://postgres:postgres@db/x"}`,
			`{"command":"x","env":{"DB":"postgres://postgres:«password»@db/x"}}`},
		{`"command": "x", "env": {"K": "${K:-f4ll}", "L": "${L:-}", "M": "x9${M}", "PIN": 1234, "API_KEY": 99}`,
			`{"command":"x","env":{"API_KEY":"«API_KEY»","K":"${K:-«K»}","L":"${L:-}","M":"x9${M}","PIN":1234}}`},
		{`"url": "https://u:p4s@h/x?k=v1w2&token=t&p=${P}", "headers": {"Authorization": "Bearer t0k", "X": "Bearer ${T}"}`,
			`{"headers":{"Authorization":"Bearer «Authorization»","X":"Bearer ${T}"},"url":"https://u:«password»@h/x?k=«k»\u0026token=«token»\u0026p=${P}"}`},
		{`"command": "x", "args": ["--token", "t0k", "--key=k3y", "-e", "A_SECRET=s", "plain", "--mode=fast"]`,
			`{"args":["--token","«token»","--key=«key»","-e","A_SECRET=«A_SECRET»","plain","--mode=fast"],"command":"x"}`},
		{`"command": "x", "alwaysAllow": ["get_*", "x9y8z7"], "auth": {"CLIENT_SECRET": "abc"}`,
			`{"alwaysAllow":["get_*","x9y8z7"],"auth":{"CLIENT_SECRET":"«CLIENT_SECRET»"},"command":"x"}`},
		{`"env": ["API_KEY=k3y0z9"]`, `{"env":["«env»"]}`},
	} {
		lookup := environ("K", "", "M", "", "P", "", "T", "", "L", "")
		if got := string(server(t, lookup, tt.fields).Written); got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.fields, got, tt.want)
		}
	}
}

func TestWhatIsSecretForCertainNeedsNoLook(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/token", "onlyletters\n")
	path := write(t, dir+"/mcp.json", `{
		"inputs": [{"id": "pin", "password": true}, {"id": "host"}],
		"mcpServers": {"s": {"command": "x", "args": ["${input:pin}", "${input:host}", "${file:token}"]},
			"h": {"url": "https://u:wordyword@h/", "headers": {"Authorization": "Bearer abc.def.ghi"}}}}`)
	c, err := config.Load(config.Options{Files: []string{path}, Key: testKey, LookupEnv: environ(
		"MCPLEDGER_INPUT_PIN", "internal-words", "MCPLEDGER_INPUT_HOST", "db.example.com")})
	if err != nil {
		t.Fatal(err)
	}
	got := c.Redactor().String("internal-words db.example.com onlyletters wordyword abc.def.ghi")
	if want := "«pin» db.example.com «token» «url» «authorization»"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
