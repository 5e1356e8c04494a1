//! What an iteration consists of: its secrets, the COTs of its trees, and groups of eight trees made of them.

use std::sync::Arc;

use volvelle_net::Channel;
use volvelle_prim::ggm::{Finish, TREES};
use volvelle_prim::lpn::LocalLinearCode;
use volvelle_prim::{Block, Lines, Prg};
use zeroize::Zeroizing;

use super::Set;
use crate::engine::CotSource;
use crate::trees::checked::{Planted, Punctured};
use crate::{OtError, Security, trees};

/// What the two parties do differently: leaves of the next trees, and what makes COTs of them.
pub(crate) trait Half: Send {
    /// All trees of an iteration, exchanged and checked.
    type Checked: Send;

    /// Exchanges and checks all trees of an iteration.
    fn exchange(
        &self,
        ch: &mut Channel,
        cots: &[Block],
        depth: u32,
        prg: &mut Prg,
    ) -> Result<Self::Checked, OtError>;

    /// [`Self::leaves`] of a group of checked trees.
    fn grow(checked: &Self::Checked, group: usize, nodes: &mut [Block]) -> Finish;

    /// Exchanges up to eight trees; returns what is still to be done to their leaves.
    fn leaves(
        &self,
        ch: &mut Channel,
        cots: &[Block],
        shape: (u32, usize),
        nodes: &mut [Block],
    ) -> Result<Finish, OtError>;
}

/// The sender's half, holding Δ.
pub(crate) struct SenderHalf(pub(crate) Zeroizing<Block>);

impl Half for SenderHalf {
    type Checked = Planted;

    fn exchange(
        &self,
        ch: &mut Channel,
        cots: &[Block],
        depth: u32,
        prg: &mut Prg,
    ) -> Result<Planted, OtError> {
        Planted::send(ch, *self.0, cots, depth, prg)
    }

    fn grow(checked: &Planted, group: usize, nodes: &mut [Block]) -> Finish {
        checked.grow(group, nodes);
        Finish::sender()
    }

    fn leaves(
        &self,
        ch: &mut Channel,
        cots: &[Block],
        shape: (u32, usize),
        nodes: &mut [Block],
    ) -> Result<Finish, OtError> {
        trees::send(ch, *self.0, cots, shape, nodes)?;
        ch.flush()?;
        Ok(Finish::sender())
    }
}

/// The receiver's half.
pub(crate) struct ReceiverHalf;

impl Half for ReceiverHalf {
    type Checked = Punctured;

    fn exchange(
        &self,
        ch: &mut Channel,
        cots: &[Block],
        depth: u32,
        prg: &mut Prg,
    ) -> Result<Punctured, OtError> {
        Punctured::receive(ch, cots, depth, prg)
    }

    fn grow(checked: &Punctured, group: usize, nodes: &mut [Block]) -> Finish {
        checked.grow_cots(group, nodes)
    }

    fn leaves(
        &self,
        ch: &mut Channel,
        cots: &[Block],
        shape: (u32, usize),
        nodes: &mut [Block],
    ) -> Result<Finish, OtError> {
        trees::receive_cots(ch, cots, shape, nodes)
    }
}

/// What malicious security needs.
pub(crate) struct Checks<T> {
    prg: Prg,
    /// The trees of this iteration, once they are checked.
    trees: Option<T>,
}

impl<T> Checks<T> {
    pub(crate) const fn new(prg: Prg) -> Self {
        Self { prg, trees: None }
    }

    /// The next trees are another iteration's.
    pub(crate) fn begin(&mut self) {
        self.trees = None;
    }

    /// [`Half::leaves`] of a group of the iteration's trees, whose COTs are all of `cots`. The first call exchanges them.
    pub(crate) fn leaves<H: Half<Checked = T>>(
        &mut self,
        half: &H,
        ch: &mut Channel,
        cots: &[Block],
        (depth, group): (u32, usize),
        nodes: &mut [Block],
    ) -> Result<Finish, OtError> {
        let trees = match self.trees.take() {
            Some(trees) => trees,
            None => half.exchange(ch, cots, depth, &mut self.prg)?,
        };
        let finish = H::grow(&trees, group, nodes);
        self.trees = Some(trees);
        Ok(finish)
    }
}

/// The security that a source with or without checks has.
pub(crate) const fn security<T>(checks: &Option<T>) -> Security {
    if checks.is_some() {
        Security::Malicious
    } else {
        Security::SemiHonest
    }
}

/// What an iteration consumes.
pub(super) struct Iteration {
    /// The LPN secrets, entry `j` of instance `s` at `instances·j + s`.
    secrets: Lines,
    /// COTs of the trees, in the order of use.
    tree_cots: Zeroizing<Vec<Block>>,
}

impl Iteration {
    /// Room for one.
    pub(super) fn empty(set: Set, security: Security) -> Self {
        let secrets = set.instances() << set.log_secret();
        Self {
            secrets: Lines::zeros(secrets),
            tree_cots: Zeroizing::new(vec![Block::ZERO; set.seed_with(security) - secrets]),
        }
    }

    /// One seeded by another source.
    pub(super) fn from_source(
        ch: &mut Channel,
        source: &mut (impl CotSource + ?Sized),
        (set, security): (Set, Security),
    ) -> Result<Self, OtError> {
        let mut iteration = Self::empty(set, security);
        source.extend(ch, &mut iteration.secrets)?;
        source.extend(ch, &mut iteration.tree_cots)?;
        Ok(iteration)
    }

    /// Sets a part of the seed, from block `at` on.
    fn put(&mut self, at: usize, seed: &[Block]) {
        let secrets = self.secrets.len();
        let (first, rest) = seed.split_at(seed.len().min(secrets.saturating_sub(at)));
        self.secrets[at.min(secrets)..][..first.len()].copy_from_slice(first);
        self.tree_cots[at.saturating_sub(secrets)..][..rest.len()].copy_from_slice(rest);
    }
}

/// Makes groups at one end.
pub(super) struct Grower<H: Half> {
    pub(super) half: H,
    /// In malicious security.
    checks: Option<Checks<H::Checked>>,
    set: Set,
    code: Arc<LocalLinearCode>,
    /// The last group.
    group: Lines,
}

impl<H: Half> Grower<H> {
    pub(super) fn new(
        half: H,
        (set, code): (Set, Arc<LocalLinearCode>),
        checks: Option<Prg>,
    ) -> Self {
        Self {
            half,
            checks: checks.map(Checks::new),
            set,
            code,
            group: Lines::zeros(TREES << set.depth()),
        }
    }

    pub(super) const fn set(&self) -> Set {
        self.set
    }

    pub(super) const fn security(&self) -> Security {
        security(&self.checks)
    }

    /// The outputs of the last group.
    pub(super) fn outputs(&self) -> &[Block] {
        &self.group
    }

    /// What comes next is another iteration.
    pub(super) fn begin(&mut self) {
        if let Some(checks) = &mut self.checks {
            checks.begin();
        }
    }

    /// Expands a group; returns how many of its outputs are handed out, which come first. The others seed the next iteration
    /// ([`Self::seed`]).
    pub(super) fn grow(
        &mut self,
        ch: &mut Channel,
        iteration: &Iteration,
        group: usize,
    ) -> Result<usize, OtError> {
        let (set, depth, used) = (self.set, self.set.depth(), self.set.group_trees(group));
        let mut finish = Some(self.leaves(ch, iteration, (group, used))?);
        if used < TREES {
            finish
                .take()
                .inspect(|finish| finish.apply(&mut self.group));
            drop_absent_trees(&mut self.group, used);
        }
        let (secrets, outputs) = (&iteration.secrets, &mut self.group[..used << depth]);
        let first_row = ((group * TREES / set.instances()) << depth) as u64;
        if set.instances() == 2 {
            self.code
                .encode_two(first_row, secrets, finish.as_ref(), outputs);
        } else {
            self.code
                .encode(first_row, secrets, finish.as_ref(), outputs);
        }
        Ok(set.kept(self.security(), group))
    }

    /// Puts those outputs of the last group, which was `group`, where they belong in the next iteration.
    pub(super) fn seed(&self, group: usize, next: &mut Iteration) {
        let security = self.security();
        let kept = self.set.kept(security, group);
        let outputs = &self.group[kept..self.set.group_outputs(group)];
        let number = group * (TREES << self.set.depth()) + kept;
        next.put(
            number.saturating_sub(self.set.handed_out_with(security)),
            outputs,
        );
    }

    /// Leaves of the `used` trees of a group, and what is still to be done to them.
    fn leaves(
        &mut self,
        ch: &mut Channel,
        iteration: &Iteration,
        (group, used): (usize, usize),
    ) -> Result<Finish, OtError> {
        let depth = self.set.depth();
        let Some(checks) = &mut self.checks else {
            let per_tree = depth as usize;
            let cots = &iteration.tree_cots[group * TREES * per_tree..][..used * per_tree];
            return self.half.leaves(ch, cots, (depth, used), &mut self.group);
        };
        let cots = &iteration.tree_cots;
        checks.leaves(&self.half, ch, cots, (depth, group), &mut self.group)
    }
}

impl Set {
    /// Groups of an iteration, of eight trees of all instances together but for the last.
    pub(super) const fn groups(self) -> usize {
        (self.trees() * self.instances()).div_ceil(TREES)
    }

    /// Trees of a group.
    const fn group_trees(self, group: usize) -> usize {
        let left = self.trees() * self.instances() - group * TREES;
        if left < TREES { left } else { TREES }
    }

    /// Outputs of a group.
    pub(super) const fn group_outputs(self, group: usize) -> usize {
        self.group_trees(group) << self.depth()
    }

    /// How many outputs of a group are handed out; those after them seed the next iteration.
    pub(super) const fn kept(self, security: Security, group: usize) -> usize {
        let made = self.group_outputs(group);
        let left = self
            .handed_out_with(security)
            .saturating_sub(group * (TREES << self.depth()));
        if left < made { left } else { made }
    }
}

/// Keeps the blocks of the first `used` of every eight, at the start.
fn drop_absent_trees(nodes: &mut [Block], used: usize) {
    for j in 0..nodes.len() / TREES {
        nodes.copy_within(j * TREES..j * TREES + used, j * used);
    }
}
