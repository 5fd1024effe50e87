package bustest

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
)

// natsBus publishes over conn. It opens a second connection to subscribe; the subscription ends
// when that connection does.
type natsBus struct {
	conn    *nats.Conn
	subject string
}

func (b natsBus) Publish(ctx context.Context, message []byte) error {
	if err := b.conn.Publish(b.subject, message); err != nil {
		return err
	}
	return b.conn.FlushWithContext(ctx)
}

func (b natsBus) Subscribe(
	ctx context.Context, subscribed func(), receive func(message []byte),
) error {
	options := b.conn.Opts
	options.AllowReconnect = false
	options.PingInterval, options.MaxPingsOut = time.Second, 2
	conn, err := options.Connect()
	if err != nil {
		return err
	}
	defer conn.Close()
	sub, err := conn.SubscribeSync(b.subject)
	if err != nil {
		return err
	}
	if err := conn.Flush(); err != nil { // until the server knows of it
		return err
	}
	subscribed()
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return err
		}
		if n, _ := sub.Dropped(); n > 0 {
			return nats.ErrSlowConsumer
		}
		receive(m.Data)
	}
}
