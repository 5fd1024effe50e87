package ringgocache

// Slot returns which version a tag has, of those that tags share.
func (s *Store) Slot(tag string) uint16 { return s.tags.slot(tag) }
