package main

import (
	"math"
	"math/big"
	"strings"

	inf "gopkg.in/inf.v0"
	"k8s.io/apimachinery/pkg/api/resource"
)

// quantityRow is one input and what became of it. Value and MilliValue are Go's answers; where those
// overflow or break the documented rounding (away from zero), Exact* is the answer by big integers,
// clamped to int64. Lossy marks canonical forms that read back as another value. Kept is how the API server
// writes the amount back where that is not the canonical form, Err why there is none.
type quantityRow struct {
	In         string `json:"in"`
	Ok         bool   `json:"ok"`
	Out        string `json:"out,omitempty"`
	Format     string `json:"format,omitempty"`
	Value      int64  `json:"value,omitzero"`
	Milli      int64  `json:"milli,omitzero"`
	ExactValue *int64 `json:"exactValue,omitempty"`
	ExactMilli *int64 `json:"exactMilli,omitempty"`
	Lossy      bool   `json:"lossy,omitempty"`
	Kept       string `json:"kept,omitempty"`
	Err        string `json:"err,omitempty"`
}

func quantities() []section {
	numbers := []string{
		"0", "1", "-1", "+1", "7", "10", "12", "100", "999", "1000", "1024", "4096", "1.5", "0.5", ".5", "5.", "1.500",
		"-1.0005", "0.0001", "1.0000000001", "00012", "100000", "123456789", "123456789012345678", "1234567890123456789",
		"9223372036854775807", "9223372036854775808", "-9223372036854775809", "18446744073709551616",
	}
	suffixes := []string{
		"", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E3", "e-3", "e+7", "e-12",
	}
	var in []string
	for _, n := range numbers {
		for _, s := range suffixes {
			in = append(in, n+s)
		}
	}
	in = append(in, oddQuantities()...)
	seen := map[string]bool{}
	var out []quantityRow
	for _, s := range in {
		if !seen[s] {
			seen[s] = true
			out = append(out, quantity(s))
		}
	}
	return []section{{"cases", rows(out)}}
}

// oddQuantities are the inputs people do not write but parsers meet.
func oddQuantities() []string {
	odd := []string{
		"", " ", "+", "-", ".", "+.", "-.", "..", "1..", "1.1.1", ".0", "-.0", "-0", "+0", "00", "000", "0.0", "0.000", "-0.0Ki",
		"Ki", "Mi", "Ti", "Pi", "Ei", ".Ki", ".Pi", "-Ti", "-Pi", "m", "k", "E", "e", "e3", "E3", "e-9", "e-10", ".e-10", "-e-10", "+k",
		"1e", "1E", "1e+", "1E-", "1ee3", "1eE3", "1E3E", "1e3k", "1k3", "1K", "1ki", "1KI", "1mi", "1MI", "1kI", "1i", "1Mi1", "1Mi+", "1 Mi",
		" 1", "1 ", "1\t", "1_000", "1,000", "0x10", "0b1", "NaN", "inf", "-Inf", "1e1.5", "--1", "++1", "+-1", "-+1", "1-", "1+", "1+1", "1-1", "1+2e3",
		"1Zi", "1Yi", "1Z", "1B", "1KB", "1GiB", "1mm", "1nn", "1un", "1uu", "1µ", "١", "1\u00a0", "\u20001", "1\x00", "１",
		"1e0", "1E0", "1e-0", "1e+0", "1e00003", "1e1", "1e2", "1e4", "1e5", "1e6", "1e9", "1e18", "1e19", "1e20", "1e21", "1e22", "1e27", "1e28", "1e29", "1e30", "1e36",
		"1e37", "1e38", "1e39", "1e40", "1e100", "1e101", "1e102", "12e100", "-1e100", "1.25e100", "1e-1", "1e-2", "1e-4", "1e-8", "1e-9", "1e-10", "1e-18", "1e-100", "-1e-100",
		"0e100", "0e-100", "0.0e5", "1e4294967296", "1e4294967299", "1e-4294967296", "1e9223372036854775808", "1e-9223372036854775809", "1e99999999999999999999",
		"1000E", "1000000E", "1500E", "0.001E", "1000P", "1000T", "1000k", "999999999999999999", "999999999999999999E", "99999999999999999999", "99999999999999999999E",
		"170141183460469231731687303715884105727n", "170141183460469231731687303715884105728n", "12345678901234567890123456789", "123456789012345678901234567890",
		"9223372036854775807n", "9223372036854775808n", "9223372036854775807m", "9223372036854775.807", "9223372036854775.808", "9223372036854776", "-9223372036854775808", "-9223372036854775808m",
		"9223372036854775806.5", "9223372036854775807.5", "-9223372036854775807.5", "8Ei", "7.999999999Ei", "7.9999999999999999999Ei", "8191Pi", "8192Pi", "9007199254740991Ki", "9007199254740992Ki", "-8Ei", "-9Ei", "100Ei", "0.1Ei", "1e3Ki",
		"0.1", "0.01", "0.001", "0.0000001", "0.00000001", "0.000000001", "0.0000000001", "0.0000000009", "0.00000000000000000001", "1.000000000", "1.0000000009", "1.9999999999", "0.9999999999", "-0.0000000001", "-1.0000000001",
		"0.1n", "0.9n", "1.1n", "1.0n", "0.0n", "-0.1n", "999n", "1000n", "1001n", "1500n", "0.1u", "1.5u", "0.0001m", "0.1m", "1.5m", "100m", "250m", "1500m", "2000m", "1234m", "1m", "-1m", "-1500m", "-100m",
		"0.1Ki", "0.5Ki", "0.9765625Ki", "-0.9765625Ki", "0.9Ki", "0.0001Ki", "0.0009765625Ki", "0.00097656251Ki", "1.1Ki", "1.01Mi", "1.5Gi", "0.25Gi", "2.5Mi", "1.00000000000000000001Gi", "-0.5Ki", "-1.5Ki", "-0.0001Ki", "-1.1Ki", "1023", "1023Ki", "1024Ki", "1025Ki", "1048576Ki", "3072Mi", "1536Mi", "-1024Ki", "-1023",
		"64Gi", "128974848", "129e6", "129M", "123Mi", "128974848000m", "0.8Gi", "16311424Ki", "3920m", "110", "47093746742", "1.2345678901234567890123456789",
		"0.00000000000000000000000000000000000000001Ki", "1.00000000000000000000000000000000000000001Ki", "123456789.123456789123456789Mi", "0.123456789123456789Ei",
		"000000000000000000000000000000000000001", "0000.5", "1.0000000000000000000000000000000000000", "100000000000000000000000000000000000000", "1.00000000000000000000e3",
		"1.23e-5", "12.34e1", "0.00012e7", "123.456k", "123.456M", "0.123k", "0.1234k", "+1.5Gi", "+.5m", "-.5", "5.m", "5.Ki", "5.e3", "1.E", "1.5E", "1.5E3", "1.5E+3", "1.5e-3", "2E2", "2E+2", "2E-2",
	}
	odd = append(odd, "1"+strings.Repeat("0", 60), strings.Repeat("9", 38), strings.Repeat("9", 38)+"E", "0."+strings.Repeat("0", 60)+"1", strings.Repeat("0", 100)+"1Ki", "1e+"+strings.Repeat("0", 30)+"3")
	return odd
}

func quantity(in string) quantityRow {
	q, err := resource.ParseQuantity(in)
	row := quantityRow{In: in, Ok: err == nil}
	if err != nil {
		row.Err = err.Error()
		return row
	}
	number, suffix := q.CanonicalizeBytes(nil)
	row.Out = string(number) + string(suffix)
	if kept := q.String(); kept != row.Out {
		row.Kept = kept
	}
	row.Format = string(q.Format)
	row.Value, row.Milli = q.Value(), q.MilliValue()
	copied := q.DeepCopy()
	dec := copied.AsDec()
	if v := exact(dec, 0); v != row.Value {
		row.ExactValue = &v
	}
	if v := exact(dec, 3); v != row.Milli {
		row.ExactMilli = &v
	}
	again, err := resource.ParseQuantity(row.Out)
	row.Lossy = err != nil || again.Cmp(q) != 0
	return row
}

// exact is dec × 10^places, rounded away from zero and clamped to int64.
func exact(dec *inf.Dec, places int) int64 {
	n := new(big.Int).Set(dec.UnscaledBig())
	shift := places - int(dec.Scale())
	ten := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(shift, -shift))), nil)
	if shift >= 0 {
		n.Mul(n, ten)
	} else {
		rest := new(big.Int)
		n.QuoRem(n, ten, rest)
		n.Add(n, big.NewInt(int64(rest.Sign())))
	}
	if n.IsInt64() {
		return n.Int64()
	}
	if n.Sign() < 0 {
		return math.MinInt64
	}
	return math.MaxInt64
}

type arithmeticRow struct {
	A         string `json:"a"`
	B         string `json:"b"`
	Sum       string `json:"sum"`
	SumFormat string `json:"sumFormat"`
	Dif       string `json:"dif"`
	DifFormat string `json:"difFormat"`
	Cmp       int    `json:"cmp"`
}

func arithmetic() []section {
	in := []string{
		"0", "0Ki", "1", "-1", "1500m", "1n", "-7u", "1.5Gi", "512Mi", "9223372036854775807", "-9223372036854775807", "12e6", "1E", "1e20",
	}
	var out []arithmeticRow
	for _, a := range in {
		for _, b := range in {
			x, y := resource.MustParse(a), resource.MustParse(b)
			row := arithmeticRow{A: a, B: b, Cmp: x.Cmp(y)}
			sum, dif := x.DeepCopy(), x.DeepCopy()
			sum.Add(y.DeepCopy())
			dif.Sub(y.DeepCopy())
			row.Sum, row.SumFormat = sum.String(), string(sum.Format)
			row.Dif, row.DifFormat = dif.String(), string(dif.Format)
			out = append(out, row)
		}
	}
	return []section{{"cases", rows(out)}}
}
