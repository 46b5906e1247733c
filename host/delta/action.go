package delta

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Action is one line of an entry: one of its fields is set, or none for an action that is not known.
type Action struct {
	CommitInfo *CommitInfo     `json:"commitInfo,omitzero"`
	Protocol   *Protocol       `json:"protocol,omitzero"`
	Metadata   *Metadata       `json:"metaData,omitzero"`
	Txn        *Txn            `json:"txn,omitzero"`
	Domain     *DomainMetadata `json:"domainMetadata,omitzero"`
	Remove     *Remove         `json:"remove,omitzero"`
	Add        *Add            `json:"add,omitzero"`
}

// Protocol says what a reader and a writer must know. The feature lists belong to reader version 3 and writer version 7;
// nil is absent, which differs from empty.
type Protocol struct {
	MinReader      int32    `json:"minReaderVersion"`
	MinWriter      int32    `json:"minWriterVersion"`
	ReaderFeatures []string `json:"readerFeatures,omitzero"`
	WriterFeatures []string `json:"writerFeatures,omitzero"`
}

// Metadata is what a table is. A new one replaces the former whole. CreatedTime is in milliseconds since 1970.
type Metadata struct {
	ID               string            `json:"id"`
	Name             string            `json:"name,omitzero"`
	Description      string            `json:"description,omitzero"`
	Format           Format            `json:"format"`
	SchemaString     string            `json:"schemaString"`
	PartitionColumns []string          `json:"partitionColumns"`
	Configuration    map[string]string `json:"configuration"`
	CreatedTime      *int64            `json:"createdTime,omitzero"`
}

// Format is the format of the data files, always parquet.
type Format struct {
	Provider string            `json:"provider"`
	Options  map[string]string `json:"options"`
}

// Add brings a data file into the table. Path is URI-encoded and relative to the table, see FilePath and LogPath. Sizes are
// in bytes, times in milliseconds since 1970, Stats is JSON, see Stats.
type Add struct {
	Path                    string             `json:"path"`
	PartitionValues         map[string]*string `json:"partitionValues"`
	Size                    int64              `json:"size"`
	ModificationTime        int64              `json:"modificationTime"`
	DataChange              bool               `json:"dataChange"`
	Stats                   string             `json:"stats,omitzero"`
	Tags                    map[string]*string `json:"tags,omitzero"`
	DeletionVector          *DeletionVector    `json:"deletionVector,omitzero"`
	BaseRowID               *int64             `json:"baseRowId,omitzero"`
	DefaultRowCommitVersion *int64             `json:"defaultRowCommitVersion,omitzero"`
	ClusteringProvider      string             `json:"clusteringProvider,omitzero"`
}

// Remove takes a data file out of the table. With ExtendedFileMetadata, PartitionValues and Size are there.
type Remove struct {
	Path                    string             `json:"path"`
	DeletionTimestamp       *int64             `json:"deletionTimestamp,omitzero"`
	DataChange              bool               `json:"dataChange"`
	ExtendedFileMetadata    *bool              `json:"extendedFileMetadata,omitzero"`
	PartitionValues         map[string]*string `json:"partitionValues,omitzero"`
	Size                    *int64             `json:"size,omitzero"`
	Stats                   string             `json:"stats,omitzero"`
	Tags                    map[string]*string `json:"tags,omitzero"`
	DeletionVector          *DeletionVector    `json:"deletionVector,omitzero"`
	BaseRowID               *int64             `json:"baseRowId,omitzero"`
	DefaultRowCommitVersion *int64             `json:"defaultRowCommitVersion,omitzero"`
}

// DeletionVector names the rows of a file that are deleted.
type DeletionVector struct {
	StorageType    string `json:"storageType"`
	PathOrInlineDV string `json:"pathOrInlineDv"`
	Offset         *int32 `json:"offset,omitzero"`
	SizeInBytes    int32  `json:"sizeInBytes"`
	Cardinality    int64  `json:"cardinality"`
	MaxRowIndex    *int64 `json:"maxRowIndex,omitzero"`
}

// id is the unique id by which the protocol tells two vectors of one file apart.
func (d *DeletionVector) id() string {
	if d == nil {
		return ""
	}
	id := d.StorageType + d.PathOrInlineDV
	if d.Offset != nil {
		id += fmt.Sprintf("@%d", *d.Offset)
	}
	return id
}

// Txn says how far an application has come. LastUpdated is in milliseconds since 1970; without it, Spark takes the
// transaction for expired as soon as a retention is set.
type Txn struct {
	AppID       string `json:"appId"`
	Version     int64  `json:"version"`
	LastUpdated *int64 `json:"lastUpdated,omitzero"`
}

// DomainMetadata is the configuration of a feature, by domain.
type DomainMetadata struct {
	Domain        string `json:"domain"`
	Configuration string `json:"configuration"`
	Removed       bool   `json:"removed"`
}

// CommitInfo tells about a commit. It has no fixed form: a field that another engine writes with another type is absent here,
// and numbers and booleans in the maps are their text. Times are in milliseconds since 1970. TxnID is unique for each logical
// commit, by which a writer finds its own entry again.
type CommitInfo struct {
	Timestamp           int64             `json:"timestamp"`
	InCommitTimestamp   *int64            `json:"inCommitTimestamp,omitzero"`
	Operation           string            `json:"operation"`
	OperationParameters map[string]string `json:"operationParameters"`
	ReadVersion         *int64            `json:"readVersion,omitzero"`
	IsolationLevel      string            `json:"isolationLevel,omitzero"`
	IsBlindAppend       *bool             `json:"isBlindAppend,omitzero"`
	OperationMetrics    map[string]string `json:"operationMetrics,omitzero"`
	EngineInfo          string            `json:"engineInfo,omitzero"`
	TxnID               string            `json:"txnId,omitzero"`
	Tags                map[string]string `json:"tags,omitzero"`
}

// Remove returns the action that takes this very file out of the table.
func (a *Add) Remove(deletionMS int64, dataChange bool) *Remove {
	size, extended := a.Size, true
	return &Remove{
		Path: a.Path, DeletionTimestamp: &deletionMS, DataChange: dataChange, ExtendedFileMetadata: &extended,
		PartitionValues: a.PartitionValues, Size: &size, Tags: a.Tags, DeletionVector: a.DeletionVector,
		BaseRowID: a.BaseRowID, DefaultRowCommitVersion: a.DefaultRowCommitVersion,
	}
}

// The wire forms tell a missing required number from zero: null and absent mean the same.
type (
	plainAdd Add
	addWire  struct {
		plainAdd
		Size       *int64 `json:"size"`
		DataChange *bool  `json:"dataChange"`
	}
	plainRemove Remove
	removeWire  struct {
		plainRemove
		DataChange *bool `json:"dataChange"`
	}
	plainTxn Txn
	txnWire  struct {
		plainTxn
		Version *int64 `json:"version"`
	}
)

// UnmarshalJSONFrom reads an add and insists on its path, size and dataChange.
func (a *Add) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var w addWire
	if err := json.UnmarshalDecode(dec, &w); err != nil {
		return err
	}
	if w.Path == "" || w.Size == nil || *w.Size < 0 || w.DataChange == nil {
		return errors.New("an add without path, size or dataChange")
	}
	*a = Add(w.plainAdd)
	a.Size, a.DataChange = *w.Size, *w.DataChange
	return nil
}

// UnmarshalJSONFrom reads a remove and insists on its path and dataChange.
func (r *Remove) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var w removeWire
	if err := json.UnmarshalDecode(dec, &w); err != nil {
		return err
	}
	if w.Path == "" || w.DataChange == nil {
		return errors.New("a remove without path or dataChange")
	}
	*r = Remove(w.plainRemove)
	r.DataChange = *w.DataChange
	return nil
}

// UnmarshalJSONFrom reads a txn and insists on its application and version.
func (t *Txn) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var w txnWire
	if err := json.UnmarshalDecode(dec, &w); err != nil {
		return err
	}
	if w.AppID == "" || w.Version == nil {
		return errors.New("a txn without appId or version")
	}
	*t = Txn(w.plainTxn)
	t.Version = *w.Version
	return nil
}

// UnmarshalJSONFrom takes of a commitInfo what it knows and understands.
func (c *CommitInfo) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var m map[string]jsontext.Value
	if err := json.UnmarshalDecode(dec, &m, jsontext.AllowDuplicateNames(true)); err != nil {
		return err
	}
	*c = CommitInfo{}
	for name, into := range map[string]any{
		"timestamp": &c.Timestamp, "inCommitTimestamp": &c.InCommitTimestamp, "operation": &c.Operation,
		"readVersion": &c.ReadVersion, "isolationLevel": &c.IsolationLevel, "isBlindAppend": &c.IsBlindAppend,
		"engineInfo": &c.EngineInfo, "txnId": &c.TxnID,
	} {
		if v, ok := m[name]; ok && json.Unmarshal(v, into) != nil {
			forget(into)
		}
	}
	c.OperationParameters = texts(m["operationParameters"])
	c.OperationMetrics = texts(m["operationMetrics"])
	c.Tags = texts(m["tags"])
	return nil
}

// forget takes back what a failed unmarshal may have left.
func forget(into any) {
	switch p := into.(type) {
	case *int64:
		*p = 0
	case *string:
		*p = ""
	case **int64:
		*p = nil
	case **bool:
		*p = nil
	}
}

// texts reads an object whose values are strings, or other values as they are written. Null is left out.
func texts(v jsontext.Value) map[string]string {
	var m map[string]jsontext.Value
	if v == nil || json.Unmarshal(v, &m, jsontext.AllowDuplicateNames(true)) != nil || m == nil {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, raw := range m {
		switch raw.Kind() {
		case 'n':
		case '"':
			var s string
			if json.Unmarshal(raw, &s) == nil {
				out[k] = s
			}
		default:
			out[k] = string(raw)
		}
	}
	return out
}

// check says what of an action that others wrote cannot be true.
func (a *Action) check() error {
	count := 0
	for _, set := range []bool{
		a.CommitInfo != nil, a.Protocol != nil, a.Metadata != nil, a.Txn != nil, a.Domain != nil, a.Remove != nil, a.Add != nil,
	} {
		if set {
			count++
		}
	}
	if count > 1 {
		return errors.New("several actions in one line")
	}
	switch {
	case a.Protocol != nil:
		return a.Protocol.check()
	case a.Metadata != nil:
		return a.Metadata.check()
	case a.Add != nil:
		return checkFile(a.Add.Path)
	case a.Remove != nil:
		return checkFile(a.Remove.Path)
	case a.Txn != nil && a.Txn.AppID == "":
		return errors.New("a txn without an appId")
	case a.Domain != nil && a.Domain.Domain == "":
		return errors.New("a domainMetadata without a domain")
	}
	return nil
}

func checkFile(path string) error {
	if path == "" {
		return errors.New("a file action without a path")
	}
	_, err := decodePath(path)
	return err
}

func (p *Protocol) check() error {
	switch {
	case p.MinReader < 1 || p.MinWriter < 1:
		return errors.New("a protocol without versions")
	case (p.MinReader == 3) != (p.ReaderFeatures != nil) && p.MinReader <= 3:
		return fmt.Errorf("a protocol of reader version %d and readerFeatures that do not go together", p.MinReader)
	case (p.MinWriter == 7) != (p.WriterFeatures != nil) && p.MinWriter <= 7:
		return fmt.Errorf("a protocol of writer version %d and writerFeatures that do not go together", p.MinWriter)
	}
	return nil
}

func (m *Metadata) check() error {
	switch {
	case m.ID == "" || m.SchemaString == "":
		return errors.New("a metaData without id or schemaString")
	case !strings.EqualFold(m.Format.Provider, "parquet"):
		return fmt.Errorf("data files in the format %q", m.Format.Provider)
	}
	return nil
}
