//! Between coefficients of `1, x, x², …` and those of the basis of the additive Fourier transform: additions only (Gao, Mateer).

use super::add;
use crate::Block;
use crate::simd::clmul::Lanes;

/// Largest `log2` of the coefficients whose basis is changed in registers.
const MAX_DIGITS: u32 = 4;

/// `log2` of the blocks worked on together: 256 KiB, in the second-level cache. A local tuning knob.
const LOG_CHUNK: u32 = 14;

/// A step of the change of basis.
#[derive(Clone, Copy)]
enum Pass {
    /// Divides every `2·half` coefficients by `x^half + x^shift`.
    Divide { half: usize, shift: usize },
    /// The whole change, for every `2^log` coefficients (16 at most) that are `stride` apart.
    Digits { log: u32, stride: usize },
}

impl Pass {
    /// What is left of it where the upper half of `2^log_points` coefficients is zero.
    fn of_half(self, log_points: u32) -> Option<Self> {
        match self {
            _ if self.span() < 1 << log_points => Some(self),
            Self::Digits { log, stride } if log > 2 => Some(Self::Digits {
                log: log - 1,
                stride,
            }),
            _ => None,
        }
    }

    /// Coefficients that it joins.
    fn span(self) -> usize {
        match self {
            Self::Divide { half, .. } => 2 * half,
            Self::Digits { log, stride } => stride << log,
        }
    }
}

/// The passes, for `2^log_points` coefficients.
pub(super) struct ChangeOfBasis {
    passes: Vec<Pass>,
    /// What is left of them where the upper half of all coefficients is zero.
    half_passes: Vec<Pass>,
}

impl ChangeOfBasis {
    pub(super) fn new(log_points: u32) -> Self {
        let mut passes = Vec::new();
        change_of_basis(log_points, 0, &mut passes);
        let half_passes = passes.iter().filter_map(|p| p.of_half(log_points));
        Self {
            half_passes: half_passes.collect(),
            passes,
        }
    }

    /// The change of basis of the lower half of the coefficients, all others being zero.
    #[inline(always)]
    pub(super) fn expand_half<L: Lanes>(&self, l: L, points: &mut [Block]) {
        let chunk = points.len().min(1 << LOG_CHUNK);
        let mut passes = &self.half_passes[..];
        while let [first, rest @ ..] = passes {
            if first.span() * L::WIDTH > chunk {
                pass::<L, false>(l, points, *first);
                passes = rest;
                continue;
            }
            let (run, rest) = passes.split_at(small(passes.iter(), chunk / L::WIDTH));
            for chunk in points.chunks_exact_mut(chunk) {
                for &step in run {
                    pass::<L, false>(l, chunk, step);
                }
            }
            passes = rest;
        }
    }

    /// The inverse of the change of basis of all coefficients.
    #[inline(always)]
    pub(super) fn collapse<L: Lanes>(&self, l: L, points: &mut [Block]) {
        let chunk = points.len().min(1 << LOG_CHUNK);
        let mut passes = &self.passes[..];
        while let [rest @ .., last] = passes {
            if last.span() * L::WIDTH > chunk {
                pass::<L, true>(l, points, *last);
                passes = rest;
                continue;
            }
            let run = small(passes.iter().rev(), chunk / L::WIDTH);
            let (rest, run) = passes.split_at(passes.len() - run);
            for chunk in points.chunks_exact_mut(chunk) {
                for &step in run.iter().rev() {
                    pass::<L, true>(l, chunk, step);
                }
            }
            passes = rest;
        }
    }
}

/// How many passes from the start on fit `points`.
fn small<'a>(passes: impl Iterator<Item = &'a Pass>, points: usize) -> usize {
    passes.take_while(|pass| pass.span() <= points).count()
}

/// The passes for polynomials of `2^m` coefficients, each `2^stride` field elements.
///
/// With `τ = 2^i` the largest power of two below `m` that is one too, write the polynomial in powers of `x^(2^τ) + x`, which is
/// the basis polynomial of index `2^τ`; then treat the digits, and the polynomial of which they are the coefficients, likewise.
fn change_of_basis(m: u32, stride: u32, passes: &mut Vec<Pass>) {
    if m <= MAX_DIGITS {
        if m > 1 {
            passes.push(Pass::Digits {
                log: m,
                stride: 1 << stride,
            });
        }
        return;
    }
    let tau = m.next_power_of_two() / 2;
    for k in (0..m - tau).rev() {
        passes.push(Pass::Divide {
            half: 1 << (tau + k + stride),
            shift: 1 << (k + stride),
        });
    }
    change_of_basis(m - tau, stride + tau, passes);
    change_of_basis(tau, stride, passes);
}

/// A pass over `points`, a multiple of its span.
#[inline(always)]
fn pass<L: Lanes, const INVERSE: bool>(l: L, points: &mut [Block], pass: Pass) {
    match pass {
        Pass::Divide { half, shift } => divide::<L, INVERSE>(l, points, half, shift),
        Pass::Digits { log: 4, stride } => digits::<L, INVERSE, 4, 16>(l, points, stride),
        Pass::Digits { log: 3, stride } => digits::<L, INVERSE, 3, 8>(l, points, stride),
        Pass::Digits { log, stride } => {
            debug_assert_eq!(log, 2, "digits of two to four bits");
            digits::<L, INVERSE, 2, 4>(l, points, stride);
        }
    }
}

/// Divides every `2·half` coefficients by `x^half + x^shift`: remainder low, quotient high. Or the inverse.
#[inline(always)]
fn divide<L: Lanes, const INVERSE: bool>(l: L, points: &mut [Block], half: usize, shift: usize) {
    let (half, shift) = (half * L::WIDTH, shift * L::WIDTH);
    let mut points = points;
    while points.len() >= 2 * half {
        let (block, rest) = points.split_at_mut(2 * half);
        let (low, high) = block.split_at_mut(half);
        let (start, end) = high.split_at_mut(half - shift);
        if INVERSE {
            add(l, &mut low[shift..], start);
        }
        add(l, &mut start[..shift], end);
        if !INVERSE {
            add(l, &mut low[shift..], start);
        }
        points = rest;
    }
}

/// [`change_of_basis`] of `COUNT = 2^LOG` coefficients, in registers.
#[inline(always)]
fn digits<L: Lanes, const INVERSE: bool, const LOG: u32, const COUNT: usize>(
    l: L,
    points: &mut [Block],
    stride: usize,
) {
    let stride = stride * L::WIDTH;
    let mut points = points;
    while points.len() >= stride << LOG {
        let (block, rest) = points.split_at_mut(stride << LOG);
        let mut at = 0;
        while at < stride {
            let mut x = [l.splat(Block::ZERO); COUNT];
            for (i, x) in x.iter_mut().enumerate() {
                *x = l.load(&block[at + i * stride..]);
            }
            if INVERSE {
                divide_digits::<L, true, COUNT>(l, &mut x, 2, 1);
                if LOG == 4 {
                    divide_digits::<L, true, COUNT>(l, &mut x, 8, 4);
                }
                if LOG > 2 {
                    divide_digits::<L, true, COUNT>(l, &mut x, 4, 1);
                }
                if LOG == 4 {
                    divide_digits::<L, true, COUNT>(l, &mut x, 8, 2);
                }
            } else {
                if LOG == 4 {
                    divide_digits::<L, false, COUNT>(l, &mut x, 8, 2);
                }
                if LOG > 2 {
                    divide_digits::<L, false, COUNT>(l, &mut x, 4, 1);
                }
                if LOG == 4 {
                    divide_digits::<L, false, COUNT>(l, &mut x, 8, 4);
                }
                divide_digits::<L, false, COUNT>(l, &mut x, 2, 1);
            }
            for (i, &x) in x.iter().enumerate() {
                l.store(&mut block[at + i * stride..], x);
            }
            at += L::WIDTH;
        }
        points = rest;
    }
}

/// [`divide`] of coefficients in registers.
#[inline(always)]
fn divide_digits<L: Lanes, const INVERSE: bool, const COUNT: usize>(
    l: L,
    x: &mut [L::Reg; COUNT],
    half: usize,
    shift: usize,
) {
    let mut block = 0;
    while block < COUNT {
        let high = block + half;
        if INVERSE {
            for i in 0..half - shift {
                x[block + shift + i] = l.xor(x[block + shift + i], x[high + i]);
            }
        }
        for i in 0..shift {
            x[high + i] = l.xor(x[high + i], x[high + half - shift + i]);
        }
        if !INVERSE {
            for i in 0..half - shift {
                x[block + shift + i] = l.xor(x[block + shift + i], x[high + i]);
            }
        }
        block += 2 * half;
    }
}
