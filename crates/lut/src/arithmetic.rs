//! Lookup with additively shared outputs (ROTL, PoPETs 2026, §5).
//!
//! One-hot shares `e_C ⊕ e_S` at `r`, index `i` shared mod `n` (or by XOR), tables `T` of `l`-bit
//! words:
//!
//! ```text
//!     C                                                S
//!     share of i − r            (k bits)  ────────▶
//!                                         ◀────────  share of i − r            (k bits)
//!     both know δ = i − r; z_C = Σ e_C,j·T_(j+δ)         z_S = −Σ e_S,j·T_(j+δ)
//!     sign step, for each table  (l − 1 bits)  ────────▶
//!                                         ◀────────  sign step, for each table  (l − 1 bits)
//! ```
//!
//! Rounds: 2 (1 if all tables are of single bits). Bits: `2k + Σ 2(l − 1)`, both parties. Several
//! tables at one index share the one-hot, the opening and the OTs of the sign ([`crate::sign`]).
//!
//! Security (semi-honest): `δ` is uniform and independent of `i`; for the sign step see there.

use std::ops::Range;

use volvelle_net::{Channel, Label};
use volvelle_ot::Cost;
use volvelle_prim::mask;

use crate::exchange::{Plan, Steps, exchange};
use crate::onehot::{OneHots, Opening};
use crate::sign::{self, Signs};
use crate::table::Selector;
use crate::{LutError, Table};

const LABEL: Label = Label::new("lut/sign");

fn plan(log_entries: u32, words: &[u32], batch: usize) -> Plan {
    let chunk = Plan::online_chunk(|lookups| sign::message_bytes(words, lookups));
    let opening = Opening::bytes(log_entries, chunk);
    let signs = sign::message_bytes(words, chunk);
    let steps = if sign::needed(words) { 2 } else { 1 };
    Plan {
        batch,
        chunk,
        steps,
        largest_frame: opening.max(signs),
    }
}

/// What the online phase sends for a batch.
pub(crate) fn cost(log_entries: u32, words: &[u32], batch: usize) -> Cost {
    let bytes = Opening::bytes(log_entries, batch) + sign::message_bytes(words, batch);
    Cost {
        client_bits: 8 * bytes as u64,
        server_bits: 8 * bytes as u64,
        rounds: plan(log_entries, words, batch).rounds(),
        ..Cost::default()
    }
}

/// Looks up every index in every table.
pub(crate) fn lookup(
    ch: &mut Channel,
    onehots: OneHots,
    signs: Option<Signs>,
    index: &[u64],
    tables: &[Table],
) -> Result<Vec<Vec<u64>>, LutError> {
    let words: Vec<u32> = tables.iter().map(Table::bits).collect();
    let plan = plan(onehots.log_entries(), &words, onehots.len());
    let mut party = Party {
        opening: onehots.opening(index),
        selector: Selector::new(onehots.index(), onehots.log_entries(), tables),
        outputs: vec![vec![0; onehots.len()]; tables.len()],
        words,
        onehots,
        signs,
    };
    exchange(ch, &plan, &mut party)?;
    Ok(party.outputs)
}

struct Party {
    onehots: OneHots,
    signs: Option<Signs>,
    words: Vec<u32>,
    opening: Opening,
    selector: Selector,
    /// For each table, `u` (or `v`) after the first step, the outputs after the second.
    outputs: Vec<Vec<u64>>,
}

impl Party {
    /// Sums the entries that the rows select, with the sign as far as this party knows it.
    fn select(&mut self, lookups: Range<usize>, frame: &[u8]) {
        let deltas = self.opening.open_offsets(lookups.clone(), frame);
        self.onehots.for_rows(lookups.clone(), |i, row| {
            let delta = deltas[i - lookups.start] as usize;
            self.selector.set_row(row, delta);
            let sums = self.outputs.iter_mut().zip(self.selector.sums());
            sums.for_each(|(outputs, sum)| outputs[i] = sum);
        });
        for (t, outputs) in self.outputs.iter_mut().enumerate() {
            let sums = &mut outputs[lookups.clone()];
            match &self.signs {
                Some(signs) => signs.apply(t, lookups.clone(), sums),
                None => sums.iter_mut().for_each(|sum| *sum &= mask(self.words[t])),
            }
        }
    }
}

impl Steps for Party {
    fn label(&self, step: usize) -> Label {
        if step == 0 { Opening::LABEL } else { LABEL }
    }

    fn incoming(&self, step: usize, count: usize) -> usize {
        match step {
            0 => Opening::bytes(self.onehots.log_entries(), count),
            _ => sign::message_bytes(&self.words, count),
        }
    }

    fn make(&mut self, step: usize, lookups: Range<usize>, frame: &mut Vec<u8>) {
        if step == 0 {
            self.opening.make(lookups, frame);
        } else if let Some(signs) = &self.signs {
            for (t, outputs) in self.outputs.iter().enumerate() {
                signs.make(t, lookups.clone(), &outputs[lookups.clone()], frame);
            }
        }
    }

    fn take(&mut self, step: usize, lookups: Range<usize>, mut frame: &[u8]) {
        if step == 0 {
            self.select(lookups, frame);
        } else if let Some(signs) = &self.signs {
            let mut scratch = Vec::new();
            for (t, outputs) in self.outputs.iter_mut().enumerate() {
                let own = &mut outputs[lookups.clone()];
                frame = signs.take(t, lookups.clone(), frame, own, &mut scratch);
            }
        }
    }
}
