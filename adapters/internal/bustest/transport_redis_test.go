package bustest

import (
	"context"

	"github.com/redis/rueidis"
)

// redisBus is a channel of Redis or Valkey. The client must have DisableRetry and no ConnLifetime,
// so that Receive ends with the connection.
type redisBus struct {
	client  rueidis.Client
	channel string
}

func (b redisBus) Publish(ctx context.Context, message []byte) error {
	publish := b.client.B().Publish().Channel(b.channel).Message(rueidis.BinaryString(message))
	return b.client.Do(ctx, publish.Build()).Error()
}

func (b redisBus) Subscribe(
	ctx context.Context, subscribed func(), receive func(message []byte),
) error {
	ctx = rueidis.WithOnSubscriptionHook(ctx, func(s rueidis.PubSubSubscription) {
		if s.Kind == "subscribe" {
			subscribed()
		}
	})
	return b.client.Receive(ctx, b.client.B().Subscribe().Channel(b.channel).Build(),
		func(m rueidis.PubSubMessage) { receive([]byte(m.Message)) })
}
