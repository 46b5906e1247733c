package kit

import "testing"

func TestLoad(t *testing.T) {
	cases, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) < 150 {
		t.Fatalf("%d cases", len(cases))
	}
}
