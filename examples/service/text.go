package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

// How long a description is, in bytes. With the other fields, a product is 300 to 3,000 bytes
// of JSON.
const (
	shortText = 230
	longText  = 2800
)

// The words of descriptions. Each is drawn independently: texts made from a few whole sentences
// would compress better than real ones.
var (
	adjectives = strings.Fields(`light sturdy compact foldable waterproof breathable quiet warm
		adjustable handmade recycled insulated padded magnetic rechargeable stackable washable
		slim wide reinforced polished brushed natural matte glossy portable ergonomic precise
		soft durable seamless ventilated rustproof dimmable cordless modular classic elegant
		robust flexible transparent scented organic unbleached woven quilted lined tapered`)
	things = strings.Fields(`lamp kettle backpack jacket chair table bottle blanket tent knife
		shelf basket mirror towel pillow carpet bicycle helmet glove boot scarf drawer cabinet
		speaker keyboard charger cable stand tripod notebook pencil brush roller ladder hammer
		wrench drill saw bench planter hose bucket stove pan bowl cup plate tray grinder scale
		timer thermometer clock calendar wallet umbrella hammock cushion curtain doormat`)
	materials = strings.Fields(`oak beech walnut bamboo cork linen cotton wool felt leather canvas
		polyester nylon silicone rubber steel aluminium brass copper titanium glass ceramic
		porcelain stoneware concrete marble slate wicker jute hemp silk cashmere fleece`)
	verbs = strings.Fields(`keeps holds carries protects supports covers fits replaces stores
		lifts cools heats cleans lights measures opens folds dries cuts mixes hangs turns rests
		matches survives shields organises divides connects absorbs reflects resists`)
	places = strings.Fields(`kitchen garden balcony workshop office bathroom hallway garage
		bedroom terrace campsite classroom studio nursery cellar attic caravan boat festival
		beach forest mountain city commute weekend winter summer autumn holiday picnic`)
	extras = strings.Fields(`handle lid pocket zip strap hook hinge filter battery switch lining
		cover bag spring wheel seam frame base rim valve nozzle blade plug label screw bracket
		magnet spout grip buckle cord ring pad sleeve insert divider`)
)

// describe returns the description of a product, always the same. Most are short.
func describe(id int) string {
	rnd := rand.New(rand.NewPCG(uint64(id), 2))
	length := int(shortText * math.Pow(float64(longText)/shortText, rnd.Float64()))
	var b strings.Builder
	for b.Len() < length {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(sentence(rnd))
	}
	return b.String()[:length]
}

// sentence returns a sentence of a description.
func sentence(rnd *rand.Rand) string {
	one := func(words []string) string { return words[rnd.IntN(len(words))] }
	switch rnd.IntN(6) {
	case 0:
		return fmt.Sprintf("This %s %s of %s %s %s and %s in the %s.", one(adjectives), one(things),
			one(materials), one(verbs), one(adjectives), one(extras), one(places))
	case 1:
		return fmt.Sprintf("With %s %s, %s %s and a %s %s.", one(adjectives), one(extras),
			one(materials), one(extras), one(adjectives), one(things))
	case 2:
		return fmt.Sprintf("Measures %d x %d x %d cm, weighs %d g.", 2+rnd.IntN(198),
			2+rnd.IntN(98), 1+rnd.IntN(60), 20+rnd.IntN(9980))
	case 3:
		return fmt.Sprintf("For %s or %s: %s, %s, %s.", one(places), one(places),
			one(adjectives), one(adjectives), one(adjectives))
	case 4:
		return fmt.Sprintf("The %s %s what a %s %s needs, from %s to %s.", one(extras), one(verbs),
			one(adjectives), one(things), one(materials), one(places))
	default:
		return fmt.Sprintf("%s %s, %s %s; order number %06d.", strings.ToUpper(one(materials)),
			one(extras), one(adjectives), one(things), rnd.IntN(1_000_000))
	}
}
