// Prints the vectors of quantity.tsv: what Go's resource.Quantity answers.
//
//	go mod init quantityvectors && go get k8s.io/apimachinery@v0.34.3 && go run . > quantity.tsv
package main

import (
	"bufio"
	"fmt"
	"math/rand"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

var suffixes = []string{"", "", "", "m", "k", "M", "G", "T", "P", "E", "u", "n", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
	"e3", "E3", "e-3", "e-12", "e5", "E+6", "e20", "Zi", "K", "mi", "e", "kk"}

func digits(r *rand.Rand, most int) string {
	var b strings.Builder
	for n := r.Intn(most + 1); n > 0; n-- {
		if r.Intn(3) == 0 {
			b.WriteByte('0')
		} else {
			b.WriteByte(byte('0' + r.Intn(10)))
		}
	}
	return b.String()
}

func text(r *rand.Rand) string {
	s := []string{"", "", "", "", "-", "+"}[r.Intn(6)]
	most := []int{2, 4, 10, 20, 30}[r.Intn(5)]
	s += digits(r, most)
	if r.Intn(3) == 0 {
		s += "." + digits(r, most)
	}
	return s + suffixes[r.Intn(len(suffixes))]
}

// fresh prints without the text that was parsed.
func fresh(q resource.Quantity) string {
	q = q.DeepCopy()
	q.Neg()
	q.Neg()
	return q.String()
}

func main() {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	r := rand.New(rand.NewSource(20240601))
	texts := []string{"", "0", "+", "-", ".", "00", "0.0", "Ki", "e5", "0Ki", "1Ki", "1023", "1023Ki", "1024Ki", "1536Mi", "0.5Ki", "1.5Gi",
		"1.Ki", ".5", "1.500", "1.5", "1500m", "100m", "1000m", "0001", "+5", "12e6", "1e1000000000", "1e4294967297", "1e99999999999999999999",
		"9223372036854775807", "9223372036854775808", "-9223372036854775808", "8Ei", "7Ei", "-8Ei", "1000E", "10E", "0.1n", "1n", "-0.1n", "1.1n",
		"33Gi", "32849844Ki", "47126528655360m", "120Gi", "50000", "50k", "1 ", " 1", "1K", "1Gb", "abc", "1e3m", "--1", "+-1", "1..2", "1.2.3", "0x10",
		"1_000", "\u0663", "1e", "1E", "-E", "999999999999999999", "1000000000000000000", "-.1234567890123456789012", "9007199254740993", "100Ti", "0.000000001Ki"}
	for len(texts) < 1500 {
		texts = append(texts, text(r))
	}
	var good []resource.Quantity
	var names []string
	for _, s := range texts {
		q, err := resource.ParseQuantity(s)
		if err != nil {
			fmt.Fprintf(out, "parse\t%s\t!%s\n", s, err)
			continue
		}
		good = append(good, q)
		names = append(names, s)
		_, fast := q.AsInt64()
		up, kilo := q.DeepCopy(), q.DeepCopy()
		exactUp, exactKilo := up.RoundUp(0), kilo.RoundUp(3)
		if strings.Contains(s, "e1000000000") {
			fast = false
		}
		f := q.DeepCopy()
		fmt.Fprintf(out, "parse\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%t\t%s\t%t\t%s\t%t\t%v\n", s, q.String(), fresh(q), q.Format, q.Value(), q.MilliValue(),
			q.Sign(), fast, up.String(), exactUp, kilo.String(), exactKilo, f.AsApproximateFloat64())
	}
	for i := 0; i < 1500; i++ {
		x, y := r.Intn(len(good)), r.Intn(len(good))
		if strings.Contains(names[x]+names[y], "e1000000000") {
			continue
		}
		sum, difference, compared := good[x].DeepCopy(), good[x].DeepCopy(), good[x].DeepCopy()
		sum.Add(good[y])
		difference.Sub(good[y])
		fmt.Fprintf(out, "pair\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\n", names[x], names[y], sum.String(), sum.Format, difference.String(), difference.Format,
			compared.Cmp(good[y]), sum.Value(), difference.MilliValue())
	}
	factors := []int64{0, 1, -1, 2, 3, 10, 100, 1000, 7919, 1 << 20, -(1 << 40), 9223372036854775807, -9223372036854775808}
	for i := 0; i < 700; i++ {
		x, y := r.Intn(len(good)), factors[r.Intn(len(factors))]
		product := good[x].DeepCopy()
		exact := product.Mul(y)
		fmt.Fprintf(out, "mul\t%s\t%d\t%s\t%t\n", names[x], y, product.String(), exact)
	}
	for i := 0; i < 300; i++ {
		v := r.Int63() >> uint(r.Intn(63))
		if r.Intn(4) == 0 {
			v = -v
		}
		if r.Intn(3) == 0 {
			v = v / 1024 * 1024
		}
		for _, f := range []resource.Format{resource.DecimalSI, resource.BinarySI, resource.DecimalExponent} {
			fmt.Fprintf(out, "new\t%d\t%s\t%s\t%s\n", v, f, resource.NewQuantity(v, f), resource.NewMilliQuantity(v, f))
		}
	}
}
