//! FLUTE and FLUTE+.

use proptest::prelude::*;
use proptest::sample::Index as Pick;
use volvelle_net::testing::scripted;

use super::privacy::{BOUND, chi_square};
use super::*;
use crate::{Flute, FlutePlus};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Flute,
    FlutePlus,
}

const WAYS: [Way; 2] = [Way::Flute, Way::FlutePlus];

enum Prepared {
    Flute(Flute),
    FlutePlus(FlutePlus),
}

#[derive(Clone, Debug)]
struct Case {
    way: Way,
    log_entries: u32,
    tables: Vec<Table>,
}

impl Case {
    fn new(way: Way, log_entries: u32, widths: &[u32]) -> Self {
        Self {
            way,
            log_entries,
            tables: words(log_entries, widths, u64::from(log_entries)),
        }
    }

    fn prepare(&self, ch: &mut Channel, ot: &mut Ot, batch: usize, seed: u64) -> Prepare {
        ch.set_phase(Phase::Preprocessing);
        let mut prg = Prg::from_seed(Block(seed.into()));
        let k = self.log_entries;
        Ok(match self.way {
            Way::Flute => Prepared::Flute(Flute::prepare_with(ch, ot, k, batch, &mut prg)?),
            Way::FlutePlus => {
                Prepared::FlutePlus(FlutePlus::prepare_with(ch, ot, k, batch, &mut prg)?)
            }
        })
    }

    fn look_up(&self, prepared: Prepared, ch: &mut Channel, index: &[u64]) -> Outputs {
        ch.set_phase(Phase::Online);
        match prepared {
            Prepared::Flute(p) => p.lookup_xor(ch, index, &self.tables),
            Prepared::FlutePlus(p) => p.lookup_xor(ch, index, &self.tables),
        }
    }

    fn party(&self, ch: &mut Channel, ot: &mut Ot, index: &[u64], seed: u64) -> Outputs {
        let prepared = self.prepare(ch, ot, index.len(), seed)?;
        self.look_up(prepared, ch, index)
    }

    fn cost(&self, batch: usize) -> PhasedCost {
        match self.way {
            Way::Flute => Flute::cost(self.log_entries, batch),
            Way::FlutePlus => FlutePlus::cost(self.log_entries, batch),
        }
    }

    fn run(&self, client: &[u64], server: &[u64], seed: u64) -> Run {
        run_parties([client, server], seed, |ch, ot, index, seed| {
            self.party(ch, ot, index, seed).unwrap()
        })
    }

    fn check(&self, client: &[u64], server: &[u64], seed: u64) {
        let [a, b] = self.run(client, server, seed).outputs;
        for (t, table) in self.tables.iter().enumerate() {
            for (i, (&x, &y)) in client.iter().zip(server).enumerate() {
                let at = Index::Boolean.join(x, y, self.log_entries);
                let got = a[t][i] ^ b[t][i];
                assert_eq!(got, table.entries()[at as usize], "{self:?} lookup {i}");
            }
        }
    }
}

type Prepare = Result<Prepared, LutError>;
type Outputs = Result<Vec<Vec<u64>>, LutError>;

/// All values of the index under all sharings.
#[test]
fn exhaustive() {
    for way in WAYS {
        for k in 1..=4 {
            let n = 1u64 << k;
            let pairs = (0..n * n * (1 + 64 / n)).map(|p| (p / n % n, p % n));
            let (client, server): (Vec<u64>, Vec<u64>) = pairs.unzip();
            // Both ways of reading, for small and large batches.
            let (client, server) = (client.repeat(4), server.repeat(4));
            for widths in [&[1][..], &[8], &[64], &[37, 1, 5]] {
                let case = Case::new(way, k, widths);
                case.check(&client, &server, 7);
                let pairs = (n * n) as usize;
                case.check(&client[..pairs], &server[..pairs], 8);
            }
        }
    }
}

#[test]
fn larger_tables_and_several_chunks() {
    for way in WAYS {
        for (k, batch) in [(3, 8193), (5, 600), (6, 300), (7, 8200), (8, 4500)] {
            let client = random_index(k, batch, 1);
            let server = random_index(k, batch, 2);
            Case::new(way, k, &[8, 33]).check(&client, &server, k.into());
        }
    }
    for k in 9..=12 {
        let (client, server) = (random_index(k, 600, 1), random_index(k, 600, 2));
        Case::new(Way::FlutePlus, k, &[16]).check(&client, &server, 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_shape(
        plus: bool,
        k in 1u32..=8,
        widths in prop::collection::vec(1u32..=64, 1..4),
        batch in 1usize..1000,
        seed: u64,
    ) {
        let way = WAYS[usize::from(plus)];
        // Shares count modulo the number of entries.
        let (client, server) = (random_index(64, batch, seed), random_index(64, batch, !seed));
        Case::new(way, k, &widths).check(&client, &server, seed);
    }
}

#[test]
fn bits() {
    for k in [2, 5, 8] {
        let (mut a, mut b) = ideal_pair(1);
        let tables = bit_tables(k, 3, 5);
        let (client, server) = (random_index(k, 200, 1), random_index(k, 200, 2));
        let party = |ch: &mut Channel, ot: &mut Ot, index: &[u64]| {
            let prepared = FlutePlus::prepare(ch, ot, k, index.len()).unwrap();
            prepared.lookup_bits(ch, index, &tables).unwrap()
        };
        let (x, y, _) = run_pair_recorded(
            |ch| party(ch, &mut a, &client),
            |ch| party(ch, &mut b, &server),
        );
        for (t, table) in tables.iter().enumerate() {
            for i in 0..200 {
                let at = (client[i] ^ server[i]) as usize;
                assert_eq!(x[t].get(i) ^ y[t].get(i), table.entries().get(at));
            }
        }
    }
}

#[test]
fn cost_is_what_the_meter_counts() {
    for way in WAYS {
        for k in 1..=8 {
            for batch in [1, 77, 1000] {
                check_cost(&Case::new(way, k, &[8, 3]), batch);
            }
        }
        check_cost(&Case::new(way, 3, &[8]), 20_000);
        check_cost(&Case::new(way, 8, &[8]), 4_500);
    }
}

fn check_cost(case: &Case, batch: usize) {
    let run = case.run(
        &random_index(case.log_entries, batch, 1),
        &random_index(case.log_entries, batch, 2),
        9,
    );
    let cost = case.cost(batch);
    super::cost::check_meters(&run.meters, &cost, &format!("{batch} of {case:?}"));
    super::cost::check_ots(&run.ots, &cost, &format!("{batch} of {case:?}"));
}

/// The figures of the documentation, bits a lookup at a large batch.
#[test]
fn headline_costs() {
    let bits = |cost: PhasedCost| [cost.prep.bits() / 6400, cost.online.bits() / 6400];
    for k in 1..=8 {
        let n = 1 << k;
        let cost = FlutePlus::cost(k, 6400);
        assert_eq!(bits(cost), [2 * (n - u64::from(k) - 1), 2 * u64::from(k)]);
        assert_eq!(cost.prep.cots(), 6400 * 2 * u64::from(k - 1));
        let (ands, cost) = (n - u64::from(k) - 1, Flute::cost(k, 6400));
        assert_eq!(bits(cost), [4 * ands, 2 * u64::from(k)]);
        assert_eq!(cost.prep.cots(), 6400 * 2 * ands);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let (mut a, mut b) = ideal_pair(1);
    let good = words(3, &[8], 1);
    let party = |ch: &mut Channel, ot: &mut Ot| {
        assert!(matches!(
            FlutePlus::prepare(ch, ot, 3, 0),
            Err(LutError::EmptyBatch)
        ));
        assert!(matches!(
            FlutePlus::prepare(ch, ot, 13, 1),
            Err(LutError::Size {
                max: 12,
                got: 13,
                ..
            })
        ));
        let mut p = || FlutePlus::prepare(ch, ot, 3, 2).unwrap();
        let [p0, p1, p2] = [p(), p(), p()];
        assert_eq!(p0.len(), 2);
        assert!(matches!(
            p0.lookup_xor(ch, &[1, 2], &[]),
            Err(LutError::TableCount { .. })
        ));
        assert!(matches!(
            p1.lookup_xor(ch, &[1], &good),
            Err(LutError::BatchLength {
                expected: 2,
                got: 1
            })
        ));
        assert!(matches!(
            p2.lookup_xor(ch, &[1, 2], &words(4, &[8], 1)),
            Err(LutError::TableEntries { .. })
        ));
    };
    run_pair_recorded(|ch| party(ch, &mut a), |ch| party(ch, &mut b));
}

fn recorded(case: &Case, batch: usize) -> [(Role, Vec<u8>); 2] {
    let index = random_index(case.log_entries, batch, 1);
    let transcript = case.run(&index, &index, 21).transcript;
    [
        (Role::Client, transcript.server_sent),
        (Role::Server, transcript.client_sent),
    ]
}

fn against(case: &Case, batch: usize, role: Role, script: Vec<u8>) -> Outputs {
    let (client_ot, server_ot) = ideal_pair(21);
    let (mut ot, seed) = match role {
        Role::Client => (client_ot, 21 ^ 1),
        Role::Server => (server_ot, 21 ^ 2),
    };
    let index = random_index(case.log_entries, batch, 1);
    case.party(&mut scripted(role, script), &mut ot, &index, seed)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A peer that stops early, says nonsense, or other values, gives an error or wrong outputs.
    #[test]
    fn hostile_peers(
        plus: bool,
        k in 2u32..=7,
        client: bool,
        cut: Pick,
        flips in prop::collection::vec((any::<Pick>(), 1u8..), 1..8),
        garbage in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let case = Case::new(WAYS[usize::from(plus)], k, &[9, 64]);
        let (role, script) = recorded(&case, 20)[usize::from(client)].clone();
        prop_assert!(against(&case, 20, role, script.clone()).is_ok());
        prop_assert!(against(&case, 20, role, script[..cut.index(script.len())].to_vec()).is_err());
        prop_assert!(against(&case, 20, role, garbage).is_err());
        prop_assert!(against(&case, 40, role, script.clone()).is_err());
        let mut flipped = script;
        for (at, flip) in flips {
            let at = at.index(flipped.len());
            flipped[at] ^= flip;
        }
        let _ = against(&case, 20, role, flipped);
    }
}

/// All that is sent is uniform, whatever the input.
#[test]
fn messages_are_uniform() {
    for (way, k, batch) in [
        (Way::Flute, 4, 16_384),
        (Way::FlutePlus, 4, 16_384),
        (Way::FlutePlus, 8, 16_384),
    ] {
        let case = Case::new(way, k, &[8]);
        for input in [0, (1 << k) - 3] {
            let (mut client_ot, mut server_ot) = ideal_pair(input + 5);
            let (index, zero) = (vec![input; batch], vec![0; batch]);
            let (client, server, prep) = run_pair_recorded(
                |ch| case.prepare(ch, &mut client_ot, batch, 1).unwrap(),
                |ch| case.prepare(ch, &mut server_ot, batch, 2).unwrap(),
            );
            let (a, b, online) = run_pair_recorded(
                |ch| case.look_up(client, ch, &index).unwrap(),
                |ch| case.look_up(server, ch, &zero).unwrap(),
            );
            let shares = [a, b].map(|o| o[0].iter().map(|&s| s as u8).collect::<Vec<u8>>());
            for transcript in [prep, online] {
                for sent in [transcript.client_payload(), transcript.server_payload()] {
                    let chi = chi_square(&sent);
                    assert!(chi < BOUND, "χ² = {chi}, {case:?}");
                }
            }
            // Shares of an output are as uniform as the table's entries are spread.
            for shares in shares {
                let ones: u32 = shares.iter().map(|s| s.count_ones()).sum();
                let mean = f64::from(ones) / (8 * batch) as f64;
                assert!((mean - 0.5).abs() < 0.01, "{mean}, {case:?}");
            }
        }
    }
}

#[test]
fn wire_digests() {
    let mut got = Vec::new();
    for way in WAYS {
        for k in [2, 5, 8] {
            let case = Case::new(way, k, &[37, 8]);
            let index = |seed| random_index(k, 100, seed);
            let transcript = case.run(&index(11), &index(12), 13).transcript;
            let digest = super::wire::digest_of(&transcript);
            got.push(format!("{way:?} {k} {digest}"));
        }
    }
    let expected: Vec<&str> = include_str!("wire_flute.txt").lines().collect();
    assert_eq!(
        got,
        expected,
        "the wire format changed:\n{}",
        got.join("\n")
    );
}
