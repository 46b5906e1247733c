package job

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// Divergence is one way in which a revision that runs differs from the one that is meant.
type Divergence struct {
	// Path names the part, as transforms.clean.module.
	Path string
	// Was and Now are its values: digests of what is large.
	Was, Now string
	// Host marks what no one but the host can have changed.
	Host bool
}

func (d Divergence) String() string {
	return fmt.Sprintf("%s is %s, decided was %s", d.Path, d.Now, d.Was)
}

// Diverge lists how a revision, given as canonical JSON, differs from another one, by their parts. What a module's start
// leaves is the host's doing only where module, config and limits are the same.
func Diverge(was, now []byte) ([]Divergence, error) {
	var a, b revision
	if err := errors.Join(json.Unmarshal(was, &a), json.Unmarshal(now, &b)); err != nil {
		return nil, fmt.Errorf("read a revision: %w", err)
	}
	var d diverger
	d.number("abi", a.ABI, b.ABI, true)
	d.number("semantics", a.Semantics, b.Semantics, true)
	d.number("groups", a.Groups, b.Groups, true)
	d.number("lanes", a.Lanes, b.Lanes, false)
	for _, name := range sortedNames(a.Sources, b.Sources) {
		d.part("sources."+name, a.Sources[name], b.Sources[name])
	}
	pair(a.Transforms, b.Transforms, func(t revisionTransform) string { return t.Name }, func(old, now *revisionTransform) {
		switch {
		case old == nil:
			d.value("transforms."+now.Name, "not there", "there", false)
		case now == nil:
			d.value("transforms."+old.Name, "there", "gone", false)
		default:
			d.transform("transforms."+old.Name, old, now)
		}
	})
	d.part("sinks", a.Sinks, b.Sinks)
	d.part("errors", a.Errors, b.Errors)
	return d.list, nil
}

type diverger struct{ list []Divergence }

func (d *diverger) value(path, was, now string, host bool) {
	if was != now {
		d.list = append(d.list, Divergence{Path: path, Was: was, Now: now, Host: host})
	}
}

func (d *diverger) number(path string, was, now int, host bool) {
	d.value(path, fmt.Sprint(was), fmt.Sprint(now), host)
}

// part compares what is shown by its digest.
func (d *diverger) part(path string, was, now any) {
	if !reflect.DeepEqual(was, now) {
		d.value(path, digestOf(was), digestOf(now), false)
	}
}

func (d *diverger) transform(path string, a, b *revisionTransform) {
	d.value(path+".module", a.Module, b.Module, false)
	d.part(path+".manifest", a.Manifest, b.Manifest)
	sameCode := a.Module == b.Module && a.Limits == b.Limits && bytes.Equal(a.Config, b.Config)
	d.value(path+".image", a.Image, b.Image, sameCode)
	if !bytes.Equal(a.Config, b.Config) {
		d.value(path+".config", digestOf(a.Config), digestOf(b.Config), false)
	}
	d.value(path+".limits", fmt.Sprintf("%+v", a.Limits), fmt.Sprintf("%+v", b.Limits), false)
	d.part(path+".from", a.From, b.From)
	d.part(path+".keyBy", a.KeyBy, b.KeyBy)
}

// digestOf is the sha256 of a part's JSON.
func digestOf(part any) string {
	text, err := json.Marshal(part)
	if err != nil {
		return "unknown"
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
