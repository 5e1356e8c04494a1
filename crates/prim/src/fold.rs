//! Rotations and XOR-permutations of `n`-bit rows, `n = 2^k`, and their sums over `n` rows.
//!
//! A row is `max(1, n/64)` words; when `n < 64` only the low `n` bits of its word count, and results
//! have the rest zero. The sums fold in half `k` times (rows `i` and `i + n/2` first, so that most
//! moves are of whole words) and never build the `n × n` matrix of rotated rows.

#[cfg(target_arch = "x86_64")]
mod avx2;

use crate::{Backend, LOW_HALVES, mask};

/// Words of a row of `2^k` bits.
#[inline]
#[must_use]
pub const fn row_words(k: u32) -> usize {
    if k <= 6 { 1 } else { 1 << (k - 6) }
}

/// How bit positions move.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Move {
    /// To `j − d mod n`.
    RotateDown,
    /// To `j ⊕ d`.
    Xor,
}

/// `⊕_i row_i` rotated down by `i`: bit `j` of `out` is `⊕_i row_i[(j + i) mod n]`. Uses `rows` as
/// scratch.
///
/// # Panics
/// If `rows` is not `n` rows or `out` is not one row.
pub fn rotated_sum(rows: &mut [u64], k: u32, out: &mut [u64]) {
    fold_all(rows, k, Move::RotateDown, out);
}

/// `⊕_i P_i(row_i)` with `P_i(v)[j] = v[j ⊕ i]`. Uses `rows` as scratch.
///
/// # Panics
/// If `rows` is not `n` rows or `out` is not one row.
pub fn xored_sum(rows: &mut [u64], k: u32, out: &mut [u64]) {
    fold_all(rows, k, Move::Xor, out);
}

/// `out[(j + s) mod n] = v[j]`, in time and addresses independent of `s`.
///
/// # Panics
/// If `v` or `out` is not one row.
pub fn rotate(v: &[u64], k: u32, s: usize, out: &mut [u64]) {
    let down = ((1usize << k) - (s & ((1 << k) - 1))) & ((1 << k) - 1);
    move_by(v, k, Move::RotateDown, down, out);
}

/// `out[j ⊕ s] = v[j]`, in time and addresses independent of `s`.
///
/// # Panics
/// If `v` or `out` is not one row.
pub fn xor_permute(v: &[u64], k: u32, s: usize, out: &mut [u64]) {
    move_by(v, k, Move::Xor, s, out);
}

/// [`rotate`] by a public `s`: its time may tell `s`.
///
/// # Panics
/// If `v` or `out` is not one row.
pub fn rotate_open(v: &[u64], k: u32, s: usize, out: &mut [u64]) {
    move_open(v, k, Move::RotateDown, s, out);
}

/// [`xor_permute`] by a public `s`: its time may tell `s`.
///
/// # Panics
/// If `v` or `out` is not one row.
pub fn xor_permute_open(v: &[u64], k: u32, s: usize, out: &mut [u64]) {
    move_open(v, k, Move::Xor, s, out);
}

#[inline]
fn move_open(v: &[u64], k: u32, kind: Move, s: usize, out: &mut [u64]) {
    assert_eq!(
        (v.len(), out.len()),
        (row_words(k), row_words(k)),
        "rows of 2^{k} bits"
    );
    let s = s & ((1 << k) - 1);
    #[cfg(target_arch = "x86_64")]
    {
        let backend = Backend::current();
        if v.len() > 8 && backend == Backend::Vaes {
            // SAFETY: the Vaes backend is current only where AVX-512 was detected.
            return unsafe { move_open_avx512(v, k, kind, s, out) };
        }
        // Short rows are rotated as fast without.
        let helps = kind == Move::Xor || v.len() == 4 || v.len() > 8;
        if helps && backend >= Backend::Avx2 {
            // SAFETY: these backends are current only where AVX2, BMI1, BMI2 and POPCNT were detected; the rest checked
            // above.
            return unsafe { avx2::move_open(v, k, kind, s, out) };
        }
    }
    move_open_sized(v, k, kind, s, out);
}

/// [`move_open_sized`] compiled for AVX-512.
///
/// # Safety
/// The machine has AVX-512 F, BW, DQ, VL.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn move_open_avx512(v: &[u64], k: u32, kind: Move, s: usize, out: &mut [u64]) {
    move_open_sized(v, k, kind, s, out);
}

/// Rotates up (for [`Move::RotateDown`]: down by `−s`), or permutes.
#[inline(always)]
fn move_open_sized(v: &[u64], k: u32, kind: Move, s: usize, out: &mut [u64]) {
    let (words, bits) = (s / 64, (s % 64) as u32);
    match kind {
        Move::Xor => {
            for (i, &word) in v.iter().enumerate() {
                out[i ^ words] = word;
            }
            for (bit, low) in LOW_HALVES.into_iter().enumerate() {
                let d = 1 << bit;
                if bits & d != 0 {
                    for out in &mut *out {
                        *out = (*out >> d & low) | (*out & low) << d;
                    }
                }
            }
        }
        Move::RotateDown if k < 6 => {
            let n = 1 << k;
            let v = v[0] & mask(n);
            out[0] = (v << bits | v >> (n - bits)) & mask(n);
        }
        Move::RotateDown if v.len() == 1 => out[0] = v[0].rotate_left(bits),
        Move::RotateDown if v.len() == 2 => {
            let row = u128::from(v[0]) | u128::from(v[1]) << 64;
            let row = row.rotate_left(s as u32);
            (out[0], out[1]) = (row as u64, (row >> 64) as u64);
        }
        Move::RotateDown if v.len() == 4 => rotate_few::<4>(v, words, bits, out),
        Move::RotateDown if v.len() == 8 => rotate_few::<8>(v, words, bits, out),
        Move::RotateDown => {
            let (low, high) = v.split_at(v.len() - words);
            let (last, before) = (v[v.len() - 1], low[low.len() - 1]);
            let (wrapped, moved) = out.split_at_mut(words);
            shift_up(low, last, bits, moved);
            shift_up(high, before, bits, wrapped);
        }
    }
}

/// Rotates `W` words, a power of two of them, up by whole words and `bits` below 64.
#[inline(always)]
fn rotate_few<const W: usize>(v: &[u64], words: usize, bits: u32, out: &mut [u64]) {
    let (Some(v), Some(out)) = (v.first_chunk::<W>(), out.first_chunk_mut::<W>()) else {
        return;
    };
    for (i, out) in out.iter_mut().enumerate() {
        let from = i.wrapping_sub(words);
        let (word, below) = (v[from % W], v[from.wrapping_sub(1) % W]);
        *out = word << bits | below >> 1 >> (63 - bits);
    }
}

/// `v` shifted up by `bits` below 64, with the high bits of `below` coming in.
#[inline(always)]
fn shift_up(v: &[u64], below: u64, bits: u32, out: &mut [u64]) {
    if bits == 0 {
        return out.copy_from_slice(v);
    }
    let (Some(first), Some(start)) = (out.first_mut(), v.first()) else {
        return;
    };
    *first = start << bits | below >> (64 - bits);
    for (out, pair) in out[1..].iter_mut().zip(v.windows(2)) {
        *out = pair[1] << bits | pair[0] >> (64 - bits);
    }
}

/// [`move_by_steps`], or what is faster on the machine.
fn move_by(v: &[u64], k: u32, kind: Move, s: usize, out: &mut [u64]) {
    assert_eq!(
        (v.len(), out.len()),
        (row_words(k), row_words(k)),
        "rows of 2^{k} bits"
    );
    #[cfg(target_arch = "x86_64")]
    if let (&[a, b, c, d], true) = (v, Backend::current() >= Backend::Avx2) {
        // SAFETY: these backends are current only where AVX2 was detected.
        out.copy_from_slice(&unsafe { avx2::move_four([a, b, c, d], kind, s) });
        return;
    }
    move_by_steps(v, k, kind, s, out);
}

/// A logarithmic shifter: one masked step a bit of `s`.
fn move_by_steps(v: &[u64], k: u32, kind: Move, s: usize, out: &mut [u64]) {
    out.copy_from_slice(v);
    if k < 6 {
        out[0] &= mask(1 << k);
    }
    let mut moved = [0u64; 64];
    let mut large = Vec::new();
    let moved = if out.len() <= 64 {
        &mut moved[..out.len()]
    } else {
        large.resize(out.len(), 0);
        &mut large[..]
    };
    for bit in 0..k {
        moved.fill(0);
        xor_moved(moved, out, k, kind, bit);
        let take = ((s >> bit & 1) as u64).wrapping_neg();
        for (o, m) in out.iter_mut().zip(moved.iter()) {
            *o ^= (*o ^ m) & take;
        }
    }
}

/// `to ⊕= from moved by 2^bit`. Both are one row; high bits of `from` are zero if `n < 64`.
#[inline(always)]
fn xor_moved(to: &mut [u64], from: &[u64], k: u32, kind: Move, bit: u32) {
    let words = to.len();
    if bit >= 6 {
        let step = 1usize << (bit - 6);
        for (w, to) in to.iter_mut().enumerate() {
            *to ^= from[match kind {
                Move::RotateDown => (w + step) & (words - 1),
                Move::Xor => w ^ step,
            }];
        }
        return;
    }
    let d = 1u32 << bit;
    match kind {
        Move::Xor => {
            let low = LOW_HALVES[bit as usize];
            for (to, from) in to.iter_mut().zip(from) {
                *to ^= (from >> d & low) | (from & low) << d;
            }
        }
        Move::RotateDown if k < 6 => {
            let n = 1u32 << k;
            to[0] ^= (from[0] >> d | from[0] << (n - d)) & mask(n);
        }
        Move::RotateDown => {
            for (w, to) in to.iter_mut().enumerate() {
                *to ^= from[w] >> d | from[(w + 1) & (words - 1)] << (64 - d);
            }
        }
    }
}

fn fold_all(rows: &mut [u64], k: u32, kind: Move, out: &mut [u64]) {
    let words = row_words(k);
    assert_eq!(
        (rows.len(), out.len()),
        (words << k, words),
        "2^{k} rows of 2^{k} bits"
    );
    if k < 6 {
        rows.iter_mut().for_each(|r| *r &= mask(1 << k));
    }
    fold_best(rows, k, kind);
    out.copy_from_slice(&rows[..words]);
}

/// [`fold_sized`], or what is faster on the machine.
fn fold_best(rows: &mut [u64], k: u32, kind: Move) {
    #[cfg(target_arch = "x86_64")]
    {
        let backend = Backend::current();
        if backend == Backend::Vaes {
            // SAFETY: the Vaes backend is current only where AVX-512 was detected.
            return unsafe { fold_avx512(rows, k, kind) };
        }
        if k >= 8 && backend >= Backend::Avx2 {
            // SAFETY: these backends are current only where AVX2, BMI1, BMI2 and POPCNT were detected; lengths checked by
            // the caller.
            return unsafe { avx2::fold(rows, k, kind) };
        }
    }
    fold_sized(rows, k, kind);
}

/// [`fold_sized`] compiled for AVX-512.
///
/// # Safety
/// The machine has AVX-512 F, BW, DQ, VL.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn fold_avx512(rows: &mut [u64], k: u32, kind: Move) {
    fold_sized(rows, k, kind);
}

/// Common row sizes with their word count known to the compiler.
#[inline(always)]
fn fold_sized(rows: &mut [u64], k: u32, kind: Move) {
    match row_words(k) {
        1 => fold::<1>(rows, k, kind),
        2 => fold::<2>(rows, k, kind),
        4 => fold::<4>(rows, k, kind),
        8 => fold::<8>(rows, k, kind),
        words => fold_any(rows, k, kind, words),
    }
}

#[inline(always)]
fn fold<const W: usize>(rows: &mut [u64], k: u32, kind: Move) {
    for bit in (0..k).rev() {
        let (low, high) = rows.split_at_mut(W << bit);
        let (low, high) = (low.as_chunks_mut::<W>().0, high.as_chunks::<W>().0);
        // Spelled out: whole-word steps so that each becomes a fixed shuffle, the kinds so that none is asked for a row.
        match (bit, kind) {
            (6, _) => fold_words::<W, 1>(low, high, kind),
            (7, _) => fold_words::<W, 2>(low, high, kind),
            (8, _) => fold_words::<W, 4>(low, high, kind),
            (_, Move::Xor) => fold_bits(low, high, k, Move::Xor, bit),
            (_, Move::RotateDown) => fold_bits(low, high, k, Move::RotateDown, bit),
        }
    }
}

#[inline(always)]
fn fold_words<const W: usize, const STEP: usize>(
    low: &mut [[u64; W]],
    high: &[[u64; W]],
    kind: Move,
) {
    if kind == Move::Xor {
        for (to, from) in low.iter_mut().zip(high) {
            for w in 0..W {
                to[w] ^= from[(w ^ STEP) % W];
            }
        }
    } else {
        for (to, from) in low.iter_mut().zip(high) {
            for w in 0..W {
                to[w] ^= from[(w + STEP) % W];
            }
        }
    }
}

#[inline(always)]
fn fold_bits<const W: usize>(
    low: &mut [[u64; W]],
    high: &[[u64; W]],
    k: u32,
    kind: Move,
    bit: u32,
) {
    for (to, from) in low.iter_mut().zip(high) {
        xor_moved(to, from, k, kind, bit);
    }
}

#[inline(always)]
fn fold_any(rows: &mut [u64], k: u32, kind: Move, words: usize) {
    for bit in (0..k).rev() {
        let (low, high) = rows.split_at_mut(words << bit);
        for (to, from) in low.chunks_exact_mut(words).zip(high.chunks_exact(words)) {
            xor_moved(to, from, k, kind, bit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Block, Prg};

    fn bit(v: &[u64], j: usize) -> u64 {
        v[j / 64] >> (j % 64) & 1
    }

    #[test]
    fn moves_and_sums_follow_their_definitions() {
        let mut prg = Prg::from_seed(Block(5));
        for k in 1..=10u32 {
            let (n, words) = (1usize << k, row_words(k));
            let mut v = vec![0; words];
            prg.fill_u64(&mut v);
            let (mut rotated, mut permuted) = (vec![0; words], vec![0; words]);
            for s in (0..n).step_by(1 + n / 60) {
                rotate(&v, k, s, &mut rotated);
                xor_permute(&v, k, s, &mut permuted);
                let mut open = vec![0; words];
                rotate_open(&v, k, s, &mut open);
                assert_eq!(open, rotated, "rotate k={k} s={s}");
                xor_permute_open(&v, k, s, &mut open);
                if k >= 6 {
                    assert_eq!(open, permuted, "xor k={k} s={s}");
                }
                for j in 0..n {
                    assert_eq!(bit(&open, j ^ s), bit(&v, j), "xor k={k} s={s}");
                    assert_eq!(bit(&rotated, (j + s) % n), bit(&v, j), "rotate k={k} s={s}");
                    assert_eq!(bit(&permuted, j ^ s), bit(&v, j), "xor k={k} s={s}");
                }
            }
            let mut rows = vec![0; words << k];
            prg.fill_u64(&mut rows);
            let (mut sum, mut xored) = (vec![0; words], vec![0; words]);
            rotated_sum(&mut rows.clone(), k, &mut sum);
            xored_sum(&mut rows.clone(), k, &mut xored);
            let mut plain = rows.clone();
            if k < 6 {
                plain.iter_mut().for_each(|r| *r &= mask(n as u32));
            }
            fold_any(&mut plain, k, Move::RotateDown, words);
            assert_eq!(plain[..words], sum, "portable twin k={k}");
            for j in 0..n {
                let row = |i: usize| &rows[i * words..][..words];
                let expected = (0..n).fold(0, |acc, i| acc ^ bit(row(i), (j + i) % n));
                assert_eq!(bit(&sum, j), expected, "rotated_sum k={k}");
                let expected = (0..n).fold(0, |acc, i| acc ^ bit(row(i), j ^ i));
                assert_eq!(bit(&xored, j), expected, "xored_sum k={k}");
            }
        }
    }
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn avx2_twins_agree_with_the_portable_ones() {
        if !Backend::available().contains(&Backend::Avx2) {
            return;
        }
        let mut prg = Prg::from_seed(Block(6));
        for (k, kind) in (1..=11).flat_map(|k| [(k, Move::RotateDown), (k, Move::Xor)]) {
            let (n, words) = (1usize << k, row_words(k));
            let mut v = vec![0; words];
            prg.fill_u64(&mut v);
            let (mut out, mut twin) = (vec![0; words], vec![0; words]);
            for s in 0..n {
                move_open_sized(&v, k, kind, s, &mut out);
                // SAFETY: the features were detected; both are rows of 2^k bits, and s < 2^k.
                unsafe { avx2::move_open(&v, k, kind, s, &mut twin) };
                let counts = |word: u64| if k < 6 { word & mask(n as u32) } else { word };
                assert!(out.iter().zip(&twin).all(|(&a, &b)| counts(a) == counts(b)));
                if let &[a, b, c, d] = v.as_slice() {
                    move_by_steps(&v, k, kind, s, &mut out);
                    // SAFETY: the features were detected.
                    assert_eq!(unsafe { avx2::move_four([a, b, c, d], kind, s) }, *out);
                }
            }
            if k >= 8 {
                let mut rows = vec![0; words << k];
                prg.fill_u64(&mut rows);
                let mut twin = rows.clone();
                fold_any(&mut rows, k, kind, words);
                // SAFETY: the features were detected; these are 2^k rows of 2^k bits.
                unsafe { avx2::fold(&mut twin, k, kind) };
                assert_eq!(rows[..words], twin[..words], "k = {k}");
            }
        }
    }
}
