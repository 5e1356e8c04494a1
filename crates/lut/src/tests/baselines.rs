//! The baselines whose tables are known in preprocessing: correctness, cost, wire format, hostile peers, privacy.

use proptest::prelude::*;
use proptest::sample::Index as Pick;
use volvelle_net::testing::scripted;

use super::privacy::{BOUND, chi_square};
use super::*;
use crate::{GarbledLut, Garbling, KnownTables, OpLut, Ottt, Setup, Sharing};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Baseline {
    OneOfN,
    Shifter,
    Ottt,
    Rows,
    LogRow,
}

use Baseline::{LogRow, OneOfN, Rows, Shifter};

const ALL: [Baseline; 5] = [OneOfN, Shifter, Baseline::Ottt, Rows, LogRow];
const SHARINGS: [Sharing; 2] = [Sharing::Additive, Sharing::Xor];

/// A case: everything both parties agree on.
#[derive(Clone, Debug)]
struct Known {
    baseline: Baseline,
    index: Index,
    sharing: Sharing,
    tables: Vec<Table>,
}

enum Ready {
    OpLut(OpLut),
    Ottt(Ottt),
    Garbled(GarbledLut),
}

impl Known {
    fn log_entries(&self) -> u32 {
        self.tables[0].len().ilog2()
    }

    fn max_log_entries(&self) -> u32 {
        match self.baseline {
            OneOfN => Setup::OneOfN.max_log_entries(),
            Shifter => Setup::Shifter.max_log_entries(),
            Baseline::Ottt => Ottt::MAX_LOG_ENTRIES,
            Rows | LogRow => GarbledLut::MAX_LOG_ENTRIES,
        }
    }

    fn cost(&self, batch: usize) -> PhasedCost {
        let (k, words) = (self.log_entries(), self.tables.iter().map(Table::bits));
        let words: Vec<u32> = words.collect();
        match self.baseline {
            OneOfN => OpLut::cost(Setup::OneOfN, k, &words, batch),
            Shifter => OpLut::cost(Setup::Shifter, k, &words, batch),
            Baseline::Ottt => Ottt::cost(k, self.index, self.sharing, &words, batch),
            Rows => GarbledLut::cost(Garbling::Rows, k, self.index, &words, batch),
            LogRow => GarbledLut::cost(Garbling::LogRow, k, self.index, &words, batch),
        }
    }

    fn prepare(
        &self,
        ch: &mut Channel,
        ot: &mut Ot,
        batch: usize,
        seed: u64,
    ) -> Result<Ready, LutError> {
        ch.set_phase(Phase::Preprocessing);
        let mut prg = Prg::from_seed(Block(seed.into()));
        let known = KnownTables {
            index: self.index,
            sharing: self.sharing,
            tables: &self.tables,
        };
        let prg = &mut prg;
        let op_lut = |ch: &mut Channel, ot: &mut Ot, setup, prg: &mut Prg| {
            OpLut::prepare_with(ch, ot, setup, &known, batch, prg).map(Ready::OpLut)
        };
        let garbled = |ch: &mut Channel, ot: &mut Ot, garbling, prg: &mut Prg| {
            GarbledLut::prepare_with(ch, ot, garbling, &known, batch, prg).map(Ready::Garbled)
        };
        match self.baseline {
            OneOfN => op_lut(ch, ot, Setup::OneOfN, prg),
            Shifter => op_lut(ch, ot, Setup::Shifter, prg),
            Baseline::Ottt => Ottt::prepare_with(ch, ot, &known, batch, prg).map(Ready::Ottt),
            Rows => garbled(ch, ot, Garbling::Rows, prg),
            LogRow => garbled(ch, ot, Garbling::LogRow, prg),
        }
    }

    fn party(
        &self,
        ch: &mut Channel,
        ot: &mut Ot,
        index: &[u64],
        seed: u64,
    ) -> Result<Vec<Vec<u64>>, LutError> {
        let ready = self.prepare(ch, ot, index.len(), seed)?;
        ch.set_phase(Phase::Online);
        assert_eq!(ready.len(), index.len());
        ready.lookup(ch, index)
    }

    fn run(&self, client: &[u64], server: &[u64], seed: u64) -> Run {
        run_parties([client, server], seed, |ch, ot, index, seed| {
            self.party(ch, ot, index, seed).unwrap()
        })
    }

    /// Runs, checks every output, and that the meter counts what the cost function says.
    fn check(&self, client: &[u64], server: &[u64], seed: u64) {
        let run = self.run(client, server, seed);
        let [a, b] = &run.outputs;
        assert_eq!((a.len(), b.len()), (self.tables.len(), self.tables.len()));
        for (t, table) in self.tables.iter().enumerate() {
            for (i, (&x, &y)) in client.iter().zip(server).enumerate() {
                let at = self.index.join(x, y, self.log_entries());
                let got = self.sharing.add(a[t][i], b[t][i]) & mask(table.bits());
                assert_eq!(got, table.entries()[at as usize], "{self:?}, {i}: {x}, {y}");
            }
        }
        super::cost::compare(&run, &self.cost(client.len()), &format!("{self:?}"));
    }

    fn digest(&self, batch: usize) -> String {
        let k = self.log_entries();
        let transcript = self
            .run(&random_index(k, batch, 11), &random_index(k, batch, 12), 13)
            .transcript;
        super::wire::digest_of(&transcript)
    }
}

impl Ready {
    fn len(&self) -> usize {
        match self {
            Self::OpLut(ready) => ready.len(),
            Self::Ottt(ready) => ready.len(),
            Self::Garbled(ready) => ready.len(),
        }
    }

    fn lookup(self, ch: &mut Channel, index: &[u64]) -> Result<Vec<Vec<u64>>, LutError> {
        match self {
            Self::OpLut(ready) => ready.lookup(ch, index),
            Self::Ottt(ready) => ready.lookup(ch, index),
            Self::Garbled(ready) => ready.lookup(ch, index),
        }
    }
}

/// Every baseline, index and output kind; those that take tables of the size.
fn known(log_entries: u32, widths: &[u32]) -> impl Iterator<Item = Known> {
    let tables = words(log_entries, widths, log_entries.into());
    ALL.into_iter()
        .flat_map(move |baseline| {
            let tables = tables.clone();
            KINDS.into_iter().flat_map(move |index| {
                let tables = tables.clone();
                SHARINGS.into_iter().map(move |sharing| Known {
                    baseline,
                    index,
                    sharing,
                    tables: tables.clone(),
                })
            })
        })
        .filter(|case| case.log_entries() <= case.max_log_entries())
        .filter(|case| case.baseline != LogRow || case.sharing == Sharing::Xor)
}

/// All pairs of shares, several times over.
fn exhaustive(log_entries: u32, widths: &[u32]) {
    let n = 1u64 << log_entries;
    let pairs = (0..1 + 64 / n).flat_map(|_| (0..n * n).map(|p| (p / n, p % n)));
    let (client, server): (Vec<u64>, Vec<u64>) = pairs.unzip();
    for case in known(log_entries, widths) {
        case.check(&client, &server, 7);
    }
}

#[test]
fn exhaustive_2_to_16_entries() {
    exhaustive(1, &[1, 8, 64]);
    exhaustive(2, &[1, 7, 37]);
    exhaustive(3, &[1]);
    exhaustive(3, &[16, 64]);
    exhaustive(4, &[8]);
    exhaustive(4, &[37, 1]);
}

#[test]
fn larger_tables() {
    for (log_entries, batch) in [
        (5, 70),
        (6, 60),
        (7, 40),
        (8, 30),
        (9, 10),
        (10, 5),
        (12, 3),
    ] {
        let client = random_index(log_entries, batch, 1);
        let server = random_index(log_entries, batch, 2);
        for case in known(log_entries, &[64, 13]) {
            case.check(&client, &server, log_entries.into());
        }
    }
}

#[test]
fn batches_that_fill_no_chunk_and_several() {
    for (log_entries, batch) in [(4, 1), (4, 8192), (4, 9001), (1, 20_011)] {
        let client = random_index(log_entries, batch, 5);
        let server = random_index(log_entries, batch, 6);
        for case in known(log_entries, &[9]) {
            case.check(&client, &server, batch as u64);
        }
    }
}

#[test]
fn shares_count_modulo_the_number_of_entries() {
    let client: Vec<u64> = (0..64).map(|i| i * 0x0123_4567_89ab_cdef).collect();
    for case in known(3, &[5]) {
        case.check(&client, &[u64::MAX; 64], 1);
    }
}

#[test]
fn headline_costs() {
    const BATCH: u64 = 100_000;
    let per = |cost: PhasedCost| [cost.prep.bits() / BATCH, cost.online.bits() / BATCH];
    let op = |setup| per(OpLut::cost(setup, 8, &[8], BATCH as usize));
    assert_eq!(op(Setup::OneOfN), [255 * 256 * 8, 16]);
    assert_eq!(op(Setup::Shifter), [8 * 256 * 8, 16]);
    let ottt = |sharing| {
        per(Ottt::cost(
            8,
            Index::Arithmetic,
            sharing,
            &[8],
            BATCH as usize,
        ))
    };
    assert_eq!(ottt(Sharing::Xor), [494 + 28, 16]);
    assert_eq!(ottt(Sharing::Additive), [494 + 28 + 2 + 2 * 256 * 7, 16]);
    let garbled = |garbling, index| per(GarbledLut::cost(garbling, 8, index, &[8], BATCH as usize));
    let online = 8 + 8 * 128;
    assert_eq!(
        garbled(Garbling::Rows, Index::Boolean),
        [8 * 128 + 255 * 8, online]
    );
    assert_eq!(
        garbled(Garbling::Rows, Index::Arithmetic),
        [8 * 128 + 7 * 256 + 255 * 8, online]
    );
    assert_eq!(
        garbled(Garbling::LogRow, Index::Boolean),
        [8 * 128 + 7 * 128 + 8 * 8 * 128 + 256 * 8, online]
    );
}

#[test]
fn what_does_not_fit_is_refused() {
    let refused = |baseline, tables: Vec<Table>, batch| {
        let case = Known {
            baseline,
            index: Index::Arithmetic,
            sharing: if baseline == LogRow {
                Sharing::Xor
            } else {
                Sharing::Additive
            },
            tables,
        };
        let (mut a, mut b) = ideal_pair(1);
        let error = |ch: &mut Channel, ot: &mut Ot| case.prepare(ch, ot, batch, 1).err().unwrap();
        let (a, b, _) = run_pair_recorded(|ch| error(ch, &mut a), |ch| error(ch, &mut b));
        assert_eq!(a.to_string(), b.to_string());
        a
    };
    for baseline in ALL {
        let table = |k| words(k, &[64], 1);
        assert!(matches!(
            refused(baseline, table(3), 0),
            LutError::EmptyBatch
        ));
        assert!(matches!(
            refused(baseline, vec![], 1),
            LutError::TableCount { .. }
        ));
        let mixed = vec![table(3).remove(0), table(4).remove(0)];
        assert!(matches!(
            refused(baseline, mixed, 1),
            LutError::TableEntries { .. }
        ));
        assert!(matches!(
            refused(baseline, table(8), 1 << 21),
            LutError::TooMuchMemory { .. }
        ));
        if [OneOfN, Baseline::Ottt].contains(&baseline) {
            assert!(matches!(
                refused(baseline, table(11), 1),
                LutError::TableTooLarge { got: 11, .. }
            ));
        }
    }
    let additive = Known {
        baseline: LogRow,
        ..known(3, &[8]).next().unwrap()
    };
    let (mut a, mut b) = ideal_pair(1);
    let error = |ch: &mut Channel, ot: &mut Ot| additive.prepare(ch, ot, 2, 1).err();
    let (a, b, _) = run_pair_recorded(|ch| error(ch, &mut a), |ch| error(ch, &mut b));
    for error in [a, b] {
        assert!(matches!(error, Some(LutError::OutputKind { .. })));
    }
    let case = known(3, &[8]).next().unwrap();
    let (mut a, mut b) = ideal_pair(1);
    let error = |ch: &mut Channel, ot: &mut Ot| case.prepare(ch, ot, 2, 1)?.lookup(ch, &[1]);
    let (a, b, _) = run_pair_recorded(|ch| error(ch, &mut a), |ch| error(ch, &mut b));
    for error in [a, b] {
        assert!(matches!(
            error,
            Err(LutError::BatchLength {
                expected: 2,
                got: 1
            })
        ));
    }
}

#[test]
fn digests() {
    let cases = [3, 7].into_iter().flat_map(|k| known(k, &[37, 8]));
    let got: Vec<String> = cases
        .map(|case| {
            let Known {
                baseline,
                index,
                sharing,
                ..
            } = case;
            let (k, digest) = (case.log_entries(), case.digest(50));
            assert_eq!(digest, case.digest(50));
            format!("{baseline:?} {index} {k} {sharing:?} {digest}")
        })
        .collect();
    let expected: Vec<&str> = include_str!("baselines.txt").lines().collect();
    assert_eq!(
        got,
        expected,
        "the wire format changed:\n{}",
        got.join("\n")
    );
}

/// Both parties' raw frames of a run, and the party that is to receive them.
fn recorded(case: &Known, batch: usize) -> [(Role, Vec<u8>); 2] {
    let index = random_index(case.log_entries(), batch, 1);
    let transcript = case.run(&index, &index, 21).transcript;
    [
        (Role::Client, transcript.server_sent),
        (Role::Server, transcript.client_sent),
    ]
}

fn against(case: &Known, batch: usize, role: Role, script: Vec<u8>) -> Result<(), LutError> {
    let (client_ot, server_ot) = ideal_pair(21);
    let (mut ot, seed) = match role {
        Role::Client => (client_ot, 21 ^ 1),
        Role::Server => (server_ot, 21 ^ 2),
    };
    let index = random_index(case.log_entries(), batch, 1);
    let mut channel = scripted(role, script);
    case.party(&mut channel, &mut ot, &index, seed).map(drop)
}

fn any_case() -> impl Strategy<Value = Known> {
    let all: Vec<Known> = known(3, &[9, 64]).chain(known(5, &[5])).collect();
    prop::sample::select(all)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn truncated_scripts_are_errors(case in any_case(), client: bool, cut: Pick) {
        let (role, mut script) = recorded(&case, 20)[usize::from(client)].clone();
        prop_assert!(against(&case, 20, role, script.clone()).is_ok());
        script.truncate(cut.index(script.len()));
        prop_assert!(against(&case, 20, role, script).is_err());
    }

    #[test]
    fn garbage_is_an_error(
        case in any_case(),
        client: bool,
        bytes in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let role = if client { Role::Client } else { Role::Server };
        prop_assert!(against(&case, 20, role, bytes).is_err());
    }

    #[test]
    fn flipped_bytes_and_other_parameters_do_not_panic(
        case in any_case(),
        other in any_case(),
        client: bool,
        flips in prop::collection::vec((any::<Pick>(), 1u8..), 1..8),
    ) {
        let (role, mut script) = recorded(&case, 20)[usize::from(client)].clone();
        for (at, flip) in flips {
            let at = at.index(script.len());
            script[at] ^= flip;
        }
        let _ = against(&case, 20, role, script);
        let (role, script) = recorded(&other, 19)[usize::from(client)].clone();
        let _ = against(&case, 20, role, script);
    }
}

/// What is sent is uniform bytes whatever the inputs, and so are the shares that come out.
#[test]
fn messages_and_shares_are_uniform_whatever_the_input() {
    let batch = 16_384;
    for case in known(4, &[8]) {
        for input in [0, 13] {
            let (mut client_ot, mut server_ot) = ideal_pair(input + 3);
            let (client, server, prep) = run_pair_recorded(
                |ch| case.prepare(ch, &mut client_ot, batch, 1).unwrap(),
                |ch| case.prepare(ch, &mut server_ot, batch, 2).unwrap(),
            );
            let (a, b, online) = run_pair_recorded(
                |ch| client.lookup(ch, &vec![input; batch]).unwrap(),
                |ch| server.lookup(ch, &vec![0; batch]).unwrap(),
            );
            let shares = [a, b].map(|s| s[0].iter().map(|&s| s as u8).collect());
            let sent = [prep, online].map(|t| [t.client_payload(), t.server_payload()]);
            for bytes in sent.into_iter().flatten().chain(shares) {
                let chi = chi_square(&bytes);
                assert!(bytes.is_empty() || chi < BOUND, "χ² = {chi}, {case:?}");
            }
        }
    }
}

/// The offset is uniform, and shared so that neither party's share tells of it: both shares are uniform.
#[test]
fn offsets_are_uniform() {
    let batch = 1 << 16;
    for case in known(8, &[1]) {
        if case.baseline == OneOfN {
            continue;
        }
        let zero = vec![0; batch / 8];
        let transcript = case.run(&zero, &zero, 3).transcript;
        // The last message of each party opens its share of the offset.
        for frames in [transcript.client_frames(), transcript.server_frames()] {
            let shares = frames.last().unwrap().1;
            assert!(chi_square(shares) < BOUND, "{case:?}");
        }
    }
}
