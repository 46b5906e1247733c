package job

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/wasmill/wasmill/abi"
)

// Delay is how many milliseconds what a transform with this manifest and config emits may lie behind the watermark.
func Delay(m *abi.Manifest, config []byte) (int64, error) {
	var texts, pointers []string
	for _, d := range m.Delay {
		if d[0] == '/' {
			pointers = append(pointers, d)
		} else {
			texts = append(texts, d)
		}
	}
	found, err := textsIn(config, pointers)
	if err != nil {
		return 0, err
	}
	if len(found) > 0 || len(pointers) == 0 {
		found = append(found, texts...)
	}
	total := int64(0)
	for _, text := range found {
		ms, ok := plainDuration(text)
		if !ok {
			return 0, fmt.Errorf("delay of the manifest: %q is not a duration such as 10s or 1h30m", cut(text))
		}
		total = min(total+ms, maxQuantity)
	}
	return total, nil
}

// textsIn returns the texts that pointers lead to, also twice; what is not there is left out.
func textsIn(config []byte, pointers []string) ([]string, error) {
	if len(pointers) == 0 {
		return nil, nil
	}
	different := slices.Compact(slices.Sorted(slices.Values(pointers)))
	locator, err := abi.NewLocator(different)
	if err != nil {
		return nil, fmt.Errorf("delay of the manifest: %w", err)
	}
	fields := make([]abi.Field, len(different))
	if !locator.Locate(config, fields) {
		return nil, nil
	}
	var found []string
	for _, p := range pointers {
		f := fields[slices.Index(different, p)]
		switch f.Kind {
		case abi.FieldAbsent, abi.FieldNull:
			continue
		case abi.FieldString, abi.FieldEscaped:
		default:
			return nil, fmt.Errorf("delay of the manifest: %s in the config is no text", p)
		}
		var text string
		if err := json.Unmarshal([]byte(`"`+string(f.Text(config))+`"`), &text); err != nil {
			return nil, fmt.Errorf("delay of the manifest: %s in the config: %w", p, err)
		}
		found = append(found, text)
	}
	return found, nil
}

// plainDuration reads numbers with units, which are added up, or 0, as the transforms that come with Wasmill read them.
func plainDuration(text string) (ms int64, ok bool) {
	if text == "0" {
		return 0, true
	}
	for rest := text; rest != ""; {
		digits := 0
		for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
			digits++
		}
		n, err := strconv.ParseInt(rest[:digits], 10, 64)
		unit := digits
		for unit < len(rest) && rest[unit] >= 'a' && rest[unit] <= 'z' {
			unit++
		}
		size := sizeOf(durationUnits[:], rest[digits:unit])
		if err != nil || size == 0 || n > maxQuantity/size {
			return 0, false
		}
		ms, rest = min(ms+n*size, maxQuantity), rest[unit:]
	}
	return ms, text != ""
}
