package job

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/wasmill/wasmill/abi"
)

// config reads any object as canonical JSON. Integers stay exact, whatever their size.
func (c *checker) config(n *yaml.Node, f *Field, v *value) bool {
	if n.Kind != yaml.MappingNode {
		return c.wrong(n, v.path, CodeType, "expected an object, got "+kindOf(n))
	}
	var b []byte
	b, ok := c.json(b, n, f, v.path)
	if !ok {
		return false
	}
	canonical, err := abi.CanonicalJSON(b)
	if err != nil {
		return c.wrong(n, v.path, CodeValue, err.Error())
	}
	v.json = canonical
	return true
}

// json appends a node as JSON text.
func (c *checker) json(b []byte, n *yaml.Node, f *Field, path string) ([]byte, bool) {
	switch n.Kind {
	case yaml.MappingNode:
		return c.jsonObject(b, n, f, path)
	case yaml.SequenceNode:
		b = append(b, '[')
		ok := true
		for i, child := range n.Content {
			if i > 0 {
				b = append(b, ',')
			}
			var good bool
			p := fmt.Sprintf("%s[%d]", path, i)
			c.note(p, child, child)
			b, good = c.json(b, child, f, p)
			ok = ok && good
		}
		return append(b, ']'), ok
	}
	return c.jsonScalar(b, n, f, path)
}

func (c *checker) jsonObject(b []byte, n *yaml.Node, f *Field, path string) ([]byte, bool) {
	b = append(b, '{')
	ok := true
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, child := n.Content[i], n.Content[i+1]
		if seen[k.Value] {
			continue
		}
		seen[k.Value] = true
		if len(seen) > 1 {
			b = append(b, ',')
		}
		p := join(path, k.Value)
		c.note(p, k, child)
		b = abi.AppendJSONString(b, []byte(k.Value))
		b = append(b, ':')
		var good bool
		b, good = c.json(b, child, f, p)
		ok = ok && good
	}
	return append(b, '}'), ok
}

func (c *checker) jsonScalar(b []byte, n *yaml.Node, f *Field, path string) ([]byte, bool) {
	switch scalar(n) {
	case scalarNull:
		return append(b, "null"...), true
	case scalarBool:
		return append(b, strings.ToLower(n.Value)...), true
	case scalarInt:
		return integer(n.Value).Append(b, 10), true
	case scalarFloat:
		x, err := strconv.ParseFloat(n.Value, 64)
		if err != nil || x-x != 0 {
			return b, c.wrong(n, path, CodeRange, cut(n.Value)+" is no number that JSON can hold")
		}
		return strconv.AppendFloat(b, x, 'g', -1, 64), true
	}
	text := n.Value
	if reference.MatchString(text) {
		if !f.Interpolated {
			return b, c.wrong(n, path, CodeValue, "${env:..} and ${file:..} can only stand in connections, paths and topic names")
		}
		s, err := c.env.interpolate(text)
		if err != nil {
			return b, c.wrong(n, path, CodeEnv, err.Error())
		}
		text = s
	}
	return abi.AppendJSONString(b, []byte(text)), true
}
