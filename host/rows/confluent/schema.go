// Package confluent reads and writes payloads in the wire format of Confluent's schema registry: a zero byte, the schema's id
// in four bytes, for Protobuf the path of the message in its file, then the payload. Newer clients write all but the payload
// into a header of the record, with the schema's GUID behind a one, or its id behind a zero. A decoder reads each of these and
// makes JSON text of it; an encoder writes the payload of a document in the first form, which all clients read. Packages avro
// and protobuf do the formats.
//
// What is wrong with a record is a *Reject or, on the way out, a *sink.Misfit, which follow the error policy: framing that is
// none, an id that the registry does not know, a schema that does not parse or is of another format, a payload that its
// schema does not fit. Everything else that keeps a schema away, a registry that is down above all, is an error of its own:
// it fails the batch, which is tried again.
//
// A payload of JSON Schema is JSON already. It is taken as it is; that it fits its schema is for its writer to see to and is
// not checked, as Confluent's own readers and writers do not check it unless told to.
//
// The package knows no network and no files; whoever finds schemas stands behind Finder.
package confluent

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmill/wasmill/host/rows/avro"
	"github.com/wasmill/wasmill/host/rows/protobuf"
)

// Format says how a key or a value is written.
type Format string

// The formats. Raw bytes are left as they are.
const (
	Raw        Format = "raw"
	Avro       Format = "avro"
	Protobuf   Format = "protobuf"
	JSONSchema Format = "json-schema"
)

// Schema is a schema of a registry with all that it refers to.
type Schema struct {
	ID     int32
	Format Format
	Text   string
	// References stand in the order in which they need each other, the needed ones first.
	References []Reference
}

// Reference is a schema that another one refers to: of Avro by the name of a type, of Protobuf by the path of a file.
type Reference struct{ Name, Text string }

// ErrUnknown is wrapped by a Finder's error when the registry says that there is no such schema.
var ErrUnknown = errors.New("the registry knows no such schema")

// Finder finds schemas.
type Finder interface {
	Schema(ctx context.Context, id int32) (*Schema, error)
	// ByGUID finds a schema by its GUID, in the five groups of a UUID.
	ByGUID(ctx context.Context, guid string) (*Schema, error)
}

// The headers that hold the framing of values and keys.
const (
	ValueHeader = "__value_schema_id"
	KeyHeader   = "__key_schema_id"
)

// The codes of a Reject.
const (
	RejectFraming  = "framing"        // no schema registry framing
	RejectUnknown  = "unknown_schema" // no schema has the id
	RejectSchema   = "bad_schema"     // the schema does not parse, or is of another format
	RejectPayload  = "malformed"      // the payload does not fit its schema, or has no JSON text
	RejectTooLarge = "too_large"      // the JSON text is longer than a record may be
)

// Reject says why a record cannot be read.
type Reject struct{ Code, Reason string }

func (r *Reject) Error() string { return r.Reason }

// maxReason bounds what a message repeats of others' text.
const maxReason = 400

func reject(code, reason string) *Reject {
	if len(reason) > maxReason {
		reason = reason[:maxReason] + "..."
	}
	return &Reject{code, reason}
}

// parsed is a schema that is ready to read by, or why it is not.
type parsed struct {
	avro     *avro.Schema
	protobuf *protobuf.Schema
	reject   *Reject
}

func parse(s *Schema, want Format) *parsed {
	if s.Format != want {
		return &parsed{reject: reject(RejectSchema, fmt.Sprintf("schema %d is of format %s, and what it is to be read or written by is %s", s.ID, s.Format, want))}
	}
	p := &parsed{}
	var err error
	switch want {
	case Avro:
		var refs []string
		for _, r := range s.References {
			refs = append(refs, r.Text)
		}
		p.avro, err = avro.Parse(s.Text, refs)
	case Protobuf:
		imports := map[string]string{}
		for _, r := range s.References {
			imports[r.Name] = r.Text
		}
		p.protobuf, err = protobuf.Parse(s.Text, imports)
	}
	if err != nil {
		p.reject = reject(RejectSchema, fmt.Sprintf("schema %d: %v", s.ID, err))
	}
	return p
}
