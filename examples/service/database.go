package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"

	_ "modernc.org/sqlite" // the driver: SQLite in Go, nothing to install
)

// categories is the number of categories.
const categories = 50

// product is a row of the database and a response of the API.
type product struct {
	ID       int64  `json:"id"`
	Category int64  `json:"category"`
	Name     string `json:"name"`
	Price    int64  `json:"price"`                 // in cents
	Version  int64  `json:"version"`               // goes up with each write
	Text     string `json:"description,omitempty"` // not in lists
}

// database is the products in SQLite.
type database struct {
	*sql.DB
	queries atomic.Int64 // how many it was asked
}

// errNoProduct is returned for a product that the database does not have.
var errNoProduct = errors.New("no such product")

// openDatabase opens the database in a directory, and adds products that it lacks.
func openDatabase(ctx context.Context, dir string, products int) (*database, error) {
	path := filepath.Join(dir, "shop.db")
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(path)+
		"?_pragma=journal_mode(wal)&_pragma=synchronous(normal)&_pragma=busy_timeout(5000)")
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	d := &database{DB: db}
	if err := d.fill(ctx, products); err != nil {
		db.Close()
		return nil, fmt.Errorf("fill %s: %w", path, err)
	}
	return d, nil
}

// fill creates the table unless it exists, and adds products up to that number.
func (d *database) fill(ctx context.Context, products int) error {
	tx, err := d.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // nothing, after Commit
	const table = `CREATE TABLE IF NOT EXISTS products (id INTEGER PRIMARY KEY,
		category INTEGER NOT NULL, name TEXT NOT NULL, price INTEGER NOT NULL,
		version INTEGER NOT NULL, description TEXT NOT NULL);
		CREATE INDEX IF NOT EXISTS by_category ON products (category, price)`
	if _, err := tx.ExecContext(ctx, table); err != nil {
		return err
	}
	var there int
	if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM products").Scan(&there); err != nil {
		return err
	}
	insert, err := tx.PrepareContext(ctx, "INSERT INTO products VALUES (?, ?, ?, ?, 1, ?)")
	if err != nil {
		return err
	}
	defer insert.Close()
	for id := there + 1; id <= products; id++ {
		name := fmt.Sprintf("Product %d of the spring catalogue", id)
		_, err := insert.ExecContext(ctx, id, id%categories, name, 100+id*37%9900, describe(id))
		if err != nil {
			return err
		}
	}
	return tx.Commit()
}

const (
	listColumns = "id, category, name, price, version"
	columns     = listColumns + ", description"
)

// listFields are where listColumns go, fields where columns do.
func (p *product) listFields() []any {
	return []any{&p.ID, &p.Category, &p.Name, &p.Price, &p.Version}
}

func (p *product) fields() []any { return append(p.listFields(), &p.Text) }

// product returns a product, or errNoProduct.
func (d *database) product(ctx context.Context, id int64) (p product, err error) {
	d.queries.Add(1)
	row := d.QueryRowContext(ctx, "SELECT "+columns+" FROM products WHERE id = ?", id)
	if err = row.Scan(p.fields()...); errors.Is(err, sql.ErrNoRows) {
		return p, errNoProduct
	}
	return p, err
}

// cheapest returns the cheapest ten products of a category, without their descriptions.
func (d *database) cheapest(ctx context.Context, category int64) ([]product, error) {
	d.queries.Add(1)
	rows, err := d.QueryContext(ctx, "SELECT "+listColumns+
		" FROM products WHERE category = ? ORDER BY price, id LIMIT 10", category)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	list := []product{}
	for rows.Next() {
		var p product
		if err := rows.Scan(p.listFields()...); err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, rows.Err()
}

// setPrice writes a price and returns the product as it is now, or errNoProduct.
func (d *database) setPrice(ctx context.Context, id, price int64) (product, error) {
	return d.writePrice(ctx, id, price, func() {})
}

// writePrice is setPrice for a cache: it calls forget before the commit and after it, but not if
// the write has failed before.
func (d *database) writePrice(
	ctx context.Context, id, price int64, forget func(),
) (p product, err error) {
	d.queries.Add(1)
	tx, err := d.BeginTx(ctx, nil)
	if err != nil {
		return p, err
	}
	defer tx.Rollback() // nothing, after Commit
	row := tx.QueryRowContext(ctx, "UPDATE products SET price = ?, version = version + 1 "+
		"WHERE id = ? RETURNING "+columns, price, id)
	if err := row.Scan(p.fields()...); errors.Is(err, sql.ErrNoRows) {
		return p, errNoProduct
	} else if err != nil {
		return p, err
	}
	forget()
	defer forget()
	return p, tx.Commit()
}
