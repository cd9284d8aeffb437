package config_test

import (
	"strings"
	"testing"

	"mcpledger/discovery/config"
)

func TestASecretIsMaskedHoweverJSONSpellsIt(t *testing.T) {
	const secret = `p@ss "w\rd/é+77𝄞"`
	r := config.NewRedactor(config.Secret{Name: "DB_PASSWORD", Value: secret})
	for name, spelled := range map[string]string{
		"as it is":                  secret,
		"as Go writes it":           `p@ss \"w\\rd/é+77𝄞\"`,
		"as Python's json.dumps":    `p@ss \"w\\rd/\u00e9+77\ud834\udd1e\"`,
		"as PHP's json_encode":      `p@ss \"w\\rd\/\u00e9+77\ud834\udd1e\"`,
		"with hex in upper case":    `p@ss \"w\\rd/\u00E9+77\uD834\uDD1E\"`,
		"with only slashes escaped": `p@ss \"w\\rd\/é+77𝄞\"`,
	} {
		got := r.String(`{"p": "` + spelled + `", "n": 1}`)
		if want := `{"p": "«DB_PASSWORD»", "n": 1}`; got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
		if strings.Contains(got, "w\\") {
			t.Errorf("%s: part of the secret is left: %s", name, got)
		}
	}
}
