package delta

import (
	"fmt"

	"github.com/wasmill/wasmill/host/delta"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/rows"
)

// schemaOf reads the schema of a metaData when it is asked for.
func schemaOf(dir string, m *delta.Metadata) func() (*rows.Schema, []string, error) {
	return func() (*rows.Schema, []string, error) {
		schema, err := delta.ParseSchema(m.SchemaString)
		if err == nil {
			err = delta.CheckPartition(schema, m.PartitionColumns)
		}
		if err != nil {
			return nil, nil, fault.New(delta.CodeSchema, dir, err, "use a table whose columns are of other types")
		}
		return schema, m.PartitionColumns, nil
	}
}

func fieldsGoOn(was, is []rows.Column, within string) error {
	now := make(map[string]rows.Type, len(is))
	for _, c := range is {
		now[c.Name] = c.Type
	}
	for _, c := range was {
		name := within + c.Name
		t, there := now[c.Name]
		if !there {
			return fmt.Errorf("column %s is gone", name)
		}
		if err := typeGoesOn(c.Type, t, name); err != nil {
			return err
		}
		delete(now, c.Name)
	}
	for _, c := range is {
		if t, added := now[c.Name]; added && t.Required {
			return fmt.Errorf("column %s%s has come and is not null", within, c.Name)
		}
	}
	return nil
}

func typeGoesOn(was, is rows.Type, name string) error {
	if was.Kind != is.Kind || was.Precision != is.Precision || was.Scale != is.Scale {
		return fmt.Errorf("column %s is %s and was %s", name, is, was)
	}
	if was.Required && !is.Required {
		return fmt.Errorf("column %s may be null and never was", name)
	}
	switch was.Kind {
	case rows.Struct:
		return fieldsGoOn(was.Fields, is.Fields, name+".")
	case rows.Map:
		if err := typeGoesOn(*was.Key, *is.Key, name+".key"); err != nil {
			return err
		}
		return typeGoesOn(*was.Elem, *is.Elem, name+".value")
	case rows.List:
		return typeGoesOn(*was.Elem, *is.Elem, name+".element")
	}
	return nil
}
