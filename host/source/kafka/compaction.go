package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/wasmill/wasmill/host/fault"
)

// CodeCompaction is the code of a warning about a topic that is compacted too soon.
const CodeCompaction = "kafka.compaction"

const (
	configPolicy = "cleanup.policy"
	configLag    = "min.compaction.lag.ms"
	topicKind    = 2 // of a resource that has settings
)

// doubt warns, once a topic, of those that are compacted sooner than the job gives its batches up: a batch that is replayed
// then finds records gone that it had, and comes to something else. It runs beside the batches; where the settings cannot be
// read nothing is said.
func (s *Source) doubt(parts []ahead) {
	var names []string
	for i := range parts {
		if name := parts[i].topic; !s.doubted[name] {
			s.doubted[name] = true
			names = append(names, name)
		}
	}
	if s.cfg.Replay <= 0 || len(names) == 0 {
		return
	}
	s.pre.wg.Go(func() {
		ctx, cancel := context.WithTimeout(s.pre.ctx, s.cfg.Patience)
		defer cancel()
		s.warnOfCompaction(ctx, names)
	})
}

func (s *Source) warnOfCompaction(ctx context.Context, names []string) {
	req := kmsg.NewPtrDescribeConfigsRequest()
	for _, name := range names {
		r := kmsg.NewDescribeConfigsRequestResource()
		r.ResourceType, r.ResourceName, r.ConfigNames = topicKind, name, []string{configPolicy, configLag}
		req.Resources = append(req.Resources, r)
	}
	resp, err := req.RequestWith(ctx, s.client)
	if err != nil {
		return
	}
	for i := range resp.Resources {
		r := &resp.Resources[i]
		values := map[string]string{}
		for j := range r.Configs {
			if v := r.Configs[j].Value; v != nil {
				values[r.Configs[j].Name] = *v
			}
		}
		lag, err := strconv.ParseInt(values[configLag], 10, 64)
		if err != nil || lag >= s.cfg.Replay.Milliseconds() || !strings.Contains(values[configPolicy], "compact") {
			continue
		}
		s.cfg.Warn(fault.New(CodeCompaction, "topic "+r.ResourceName, errors.New(
			"it is compacted, and may lose records "+time.Duration(lag*int64(time.Millisecond)).String()+" after they were written, while batches are kept for replay for "+s.cfg.Replay.String()+
				": one that is run again may find less than it had, and is then refused"),
			fmt.Sprintf("set %s of the topic to %d or more, or keep batches for a shorter time: `retention` in the job file", configLag, s.cfg.Replay.Milliseconds())))
	}
}
