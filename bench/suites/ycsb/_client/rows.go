package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// encodedRows writes names and values one after another, each with its length in front. It is the
// least that a program with records as maps has to do. JSON takes several times as long.
type encodedRows struct{}

func (encodedRows) encode(buf []byte, row map[string][]byte) []byte {
	for name, value := range row {
		buf = binary.AppendUvarint(buf, uint64(len(name)))
		buf = append(buf, name...)
		buf = binary.AppendUvarint(buf, uint64(len(value)))
		buf = append(buf, value...)
	}
	return buf
}

func (encodedRows) decode(value []byte) (map[string][]byte, error) {
	row := make(map[string][]byte, 10)
	for len(value) > 0 {
		name, rest, ok := part(value)
		if !ok {
			return nil, errDamaged
		}
		row[string(name)], value, ok = part(rest)
		if !ok {
			return nil, errDamaged
		}
	}
	return row, nil
}

func (r encodedRows) change(buf, old []byte, fields map[string][]byte) []byte {
	row, err := r.decode(old)
	if err != nil {
		panic(err) // the test program stored it
	}
	maps.Copy(row, fields)
	return r.encode(buf, row)
}

var errDamaged = errors.New("a record is damaged")

// part returns the first part of data, and what follows it.
func part(data []byte) (part, rest []byte, ok bool) {
	length, n := binary.Uvarint(data)
	if n <= 0 || length > uint64(len(data)-n) {
		return nil, nil, false
	}
	return data[n : n+int(length)], data[n+int(length):], true
}

// plainRows are for a program that uses its records as bytes: all fields have the same length and
// lie one after another. A read returns no map.
type plainRows struct{}

const (
	fieldCount  = 10 // as in all workloads
	fieldLength = 100
)

func (plainRows) encode(buf []byte, row map[string][]byte) []byte {
	buf = append(buf, make([]byte, fieldCount*fieldLength)...)
	place(buf, row)
	return buf
}

func (plainRows) decode(value []byte) (map[string][]byte, error) {
	if len(value) != fieldCount*fieldLength {
		return nil, errDamaged
	}
	return nil, nil
}

func (plainRows) change(buf, old []byte, fields map[string][]byte) []byte {
	buf = append(buf, old...)
	place(buf, fields)
	return buf
}

// place copies fields to where they lie.
func place(record []byte, fields map[string][]byte) {
	for name, value := range fields {
		i, err := strconv.Atoi(strings.TrimPrefix(name, "field"))
		if err != nil || i >= fieldCount || len(value) != fieldLength {
			panic(fmt.Sprintf("the field %s of %d bytes has no place", name, len(value)))
		}
		copy(record[i*fieldLength:], value)
	}
}
