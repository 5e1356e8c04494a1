use volvelle_prim::Prg;

use super::*;
use crate::share::share;
use crate::testing::{add, both, prg};

fn random_matrix(prg: &mut Prg, shape: &MatrixShape) -> Matrix {
    let small = Ring::new(shape.weight_bits).unwrap();
    let mut entries = vec![0; shape.rows * shape.cols];
    prg.fill_masked(&mut entries, shape.weight_bits);
    let entries = entries.into_iter().map(|w| small.to_signed(w)).collect();
    Matrix::new(shape.rows, shape.cols, entries).unwrap()
}

fn plain(shape: &MatrixShape, matrix: &Matrix, vectors: &[u64], batch: usize) -> Vec<u64> {
    let mut out = vec![0; shape.rows * batch];
    for v in 0..batch {
        for r in 0..shape.rows {
            for j in 0..shape.cols {
                let w = shape.ring.from_signed(matrix.entries[r * shape.cols + j]);
                let y = &mut out[v * shape.rows + r];
                *y = shape
                    .ring
                    .add(*y, shape.ring.mul(w, vectors[v * shape.cols + j]));
            }
        }
    }
    out
}

fn check_clear(shape: &MatrixShape, x_bits: u32, batch: usize) {
    let mut prg = prg(batch);
    let matrix = random_matrix(&mut prg, shape);
    let mut x = vec![0; shape.cols * batch];
    prg.fill_masked(&mut x, x_bits);
    let (c, s) = both(
        MatVecClear::cost(shape, x_bits, batch).unwrap(),
        |ch, ot| {
            let mine = (ot.role() == Role::Server).then_some(&matrix);
            MatVecClear::prepare(ch, ot, shape, x_bits, mine, batch)
        },
        |ch, p, side| p.run(ch, if side.role() == Role::Client { &x } else { &[] }),
    );
    assert_eq!(
        add(shape.ring, &c, &s),
        plain(shape, &matrix, &x, batch),
        "{shape:?} {x_bits} {batch}"
    );
}

fn check_shared(shape: &MatrixShape, batch: usize) {
    let mut prg = prg(batch);
    let matrix = random_matrix(&mut prg, shape);
    let mut x = vec![0; shape.cols * batch];
    prg.fill_masked(&mut x, shape.ring.bits());
    let xs = share(&mut prg, shape.ring, &x);
    let (c, s) = both(
        MatVecShared::cost(shape, batch).unwrap(),
        |ch, ot| {
            let mine = (ot.role() == Role::Server).then_some(&matrix);
            MatVecShared::prepare(ch, ot, shape, mine, batch)
        },
        |ch, p, side| p.run(ch, side.words(&xs)),
    );
    assert_eq!(
        add(shape.ring, &c, &s),
        plain(shape, &matrix, &x, batch),
        "{shape:?} {batch}"
    );
}

fn shapes() -> impl Iterator<Item = MatrixShape> {
    let sizes = [(1, 1), (3, 5), (10, 17), (64, 9)];
    let widths = [(1, 1), (4, 4), (5, 16), (8, 37), (16, 64), (64, 64)];
    sizes.into_iter().flat_map(move |(rows, cols)| {
        widths.map(|(weight_bits, bits)| MatrixShape {
            rows,
            cols,
            weight_bits,
            ring: Ring::new(bits).unwrap(),
        })
    })
}

#[test]
fn clear_vectors() {
    for shape in shapes() {
        for batch in [1, 7, 64, 65] {
            for x_bits in [1, 5.min(shape.ring.bits()), shape.ring.bits()] {
                if shape.rows * shape.cols * batch < 4000 {
                    check_clear(&shape, x_bits, batch);
                }
            }
        }
    }
}

#[test]
fn shared_vectors() {
    for shape in shapes() {
        for batch in [1, 7, 64, 65] {
            if shape.rows * shape.cols * batch < 4000 {
                check_shared(&shape, batch);
            }
        }
    }
}

#[test]
fn a_layer_of_a_network() {
    let ring = Ring::new(37).unwrap();
    let shape = MatrixShape {
        rows: 64,
        cols: 64,
        weight_bits: 14,
        ring,
    };
    check_clear(&shape, 5, 360);
    check_shared(&MatrixShape { rows: 10, ..shape }, 360);
}

#[test]
fn more_than_one_wave() {
    let shape = MatrixShape {
        rows: 128,
        cols: 128,
        weight_bits: 16,
        ring: Ring::Z64,
    };
    let cost = MatVecShared::cost(&shape, 16).unwrap();
    assert!(cost.prep.rounds > 2);
    check_shared(&shape, 16);
}

#[test]
fn bad_matrices_are_errors() {
    let shape = MatrixShape {
        rows: 1,
        cols: 2,
        weight_bits: 4,
        ring: Ring::new(8).unwrap(),
    };
    assert!(Matrix::new(1, 2, vec![1]).is_err());
    let matrix = Matrix::new(1, 2, vec![7, 8]).unwrap();
    assert!(matches!(
        shape.own_matrix(Role::Server, Some(&matrix)),
        Err(ArithError::Parameter { got: 8, .. })
    ));
    assert!(matches!(
        shape.own_matrix(Role::Server, None),
        Err(ArithError::Owner { .. })
    ));
    assert!(matches!(
        shape.own_matrix(Role::Client, Some(&matrix)),
        Err(ArithError::Owner { .. })
    ));
    let transposed = Matrix::new(2, 1, vec![1, 1]).unwrap();
    assert!(matches!(
        shape.own_matrix(Role::Server, Some(&transposed)),
        Err(ArithError::Length { .. })
    ));
    assert!(
        MatVecShared::cost(
            &MatrixShape {
                weight_bits: 9,
                ..shape
            },
            1
        )
        .is_err()
    );
}
