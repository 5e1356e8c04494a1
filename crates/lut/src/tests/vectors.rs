//! Permutation and rotation of shared vectors.

use proptest::prelude::*;
use proptest::sample::Index as Pick;
use volvelle_net::testing::scripted;

use super::privacy::{BOUND, chi_square};
use super::*;
use crate::{Permute, PermuteMethod, PermuteShape, Rotate, RotateShape, Shift};

#[derive(Clone, Copy, Debug)]
enum Case {
    Permute(PermuteShape),
    Rotate(RotateShape),
}

enum Prepared {
    Permute(Permute),
    Rotate(Rotate),
}

/// One party's input: permutations or shifts, and shares.
#[derive(Clone, Debug)]
struct Input {
    secrets: Vec<u64>,
    shares: Vec<u64>,
}

struct Run {
    outputs: [Vec<u64>; 2],
    meters: [Meter; 2],
    ots: [Ot; 2],
    transcript: Transcript,
}

type Outcome = Result<Vec<u64>, LutError>;

fn permute(len: usize, bits: u32, holder: Role, method: PermuteMethod) -> Case {
    Case::Permute(PermuteShape {
        len,
        bits,
        holder,
        method,
    })
}

const METHODS: [PermuteMethod; 2] = [PermuteMethod::Trees, PermuteMethod::Switches];

fn rotate(log_len: u32, bits: u32, shift: Shift) -> Case {
    Case::Rotate(RotateShape {
        log_len,
        bits,
        shift,
    })
}

const SHIFTS: [Shift; 3] = [
    Shift::Held(Role::Client),
    Shift::Held(Role::Server),
    Shift::Shared,
];

/// Every kind, at a size.
fn kinds(log_len: u32, len: usize, bits: u32) -> Vec<Case> {
    let rotations = SHIFTS.map(|shift| rotate(log_len, bits, shift));
    let permutations = [Role::Client, Role::Server]
        .into_iter()
        .flat_map(|holder| METHODS.map(|method| permute(len, bits, holder, method)));
    rotations.into_iter().chain(permutations).collect()
}

fn random(seed: u64, len: usize, bits: u32) -> Vec<u64> {
    let mut out = vec![0; len];
    Prg::from_seed(Block(seed.into())).fill_masked(&mut out, bits);
    out
}

impl Case {
    fn len(self) -> usize {
        match self {
            Self::Permute(shape) => shape.len,
            Self::Rotate(shape) => 1 << shape.log_len,
        }
    }

    fn bits(self) -> u32 {
        match self {
            Self::Permute(shape) => shape.bits,
            Self::Rotate(shape) => shape.bits,
        }
    }

    /// Random inputs of both parties.
    fn inputs(self, batch: usize, seed: u64) -> [Input; 2] {
        let (n, bits) = (self.len(), self.bits());
        [Role::Client, Role::Server].map(|role| {
            let seed = 2 * seed + u64::from(role == Role::Server);
            let secrets = match self {
                Self::Permute(shape) if shape.holder == role => random(!seed, batch * n, 64)
                    .chunks_exact(n)
                    .flat_map(|keys| {
                        let mut places: Vec<u64> = (0..n as u64).collect();
                        places.sort_by_key(|&p| keys[p as usize]);
                        places
                    })
                    .collect(),
                Self::Permute(_) => vec![],
                Self::Rotate(shape) if shape.shift == Shift::Held(role.other()) => vec![],
                Self::Rotate(_) => random(!seed, batch, 64),
            };
            Input {
                secrets,
                shares: random(seed, batch * n, bits),
            }
        })
    }

    /// What is to come out.
    fn expected(self, [client, server]: &[Input; 2]) -> Vec<u64> {
        let n = self.len();
        let joined = client.shares.iter().zip(&server.shares);
        let vectors: Vec<u64> = joined.map(|(a, b)| a.wrapping_add(*b)).collect();
        let vectors = vectors.chunks_exact(n).enumerate();
        let moved = vectors.flat_map(|(v, vector)| match self {
            Self::Permute(_) => {
                let places = [&client.secrets, &server.secrets].map(|s| s.get(v * n..(v + 1) * n));
                let places = places.into_iter().flatten().next().unwrap();
                places.iter().map(|&p| vector[p as usize]).collect()
            }
            Self::Rotate(_) => {
                let part = |input: &Input| input.secrets.get(v).copied().unwrap_or(0);
                let shift = part(client).wrapping_add(part(server)) % n as u64;
                let mut vector = vector.to_vec();
                vector.rotate_right(shift as usize);
                vector
            }
        });
        moved.map(|x| x & mask(self.bits())).collect()
    }

    fn cost(self, batch: usize) -> PhasedCost {
        match self {
            Self::Permute(shape) => Permute::cost(shape, batch),
            Self::Rotate(shape) => Rotate::cost(shape, batch),
        }
    }

    fn prepare(
        self,
        ch: &mut Channel,
        ot: &mut Ot,
        batch: usize,
        seed: u64,
    ) -> Result<Prepared, LutError> {
        ch.set_phase(Phase::Preprocessing);
        let mut prg = Prg::from_seed(Block(seed.into()));
        Ok(match self {
            Self::Permute(shape) => {
                Prepared::Permute(Permute::prepare_with(ch, ot, shape, batch, &mut prg)?)
            }
            Self::Rotate(shape) => Prepared::Rotate(Rotate::prepare(ch, ot, shape, batch)?),
        })
    }

    fn finish(self, prepared: Prepared, ch: &mut Channel, input: &Input) -> Outcome {
        ch.set_phase(Phase::Online);
        match prepared {
            Prepared::Permute(p) => {
                let places: Vec<u32> = input.secrets.iter().map(|&p| p as u32).collect();
                p.permute(ch, &places, &input.shares)
            }
            Prepared::Rotate(p) => p.rotate(ch, &input.secrets, &input.shares),
        }
    }

    fn party(self, ch: &mut Channel, ot: &mut Ot, input: &Input, seed: u64) -> Outcome {
        let prepared = self.prepare(ch, ot, input.shares.len() / self.len(), seed)?;
        self.finish(prepared, ch, input)
    }

    fn run(self, inputs: &[Input; 2], seed: u64) -> Run {
        let (mut client_ot, mut server_ot) = ideal_pair(seed);
        let party = |ch: &mut Channel, ot: &mut Ot, input: &Input, seed| {
            let outputs = self.party(ch, ot, input, seed).unwrap();
            (outputs, ch.meter().clone())
        };
        let (client, server, transcript) = run_pair_recorded(
            |ch| party(ch, &mut client_ot, &inputs[0], seed ^ 1),
            |ch| party(ch, &mut server_ot, &inputs[1], seed ^ 2),
        );
        Run {
            outputs: [client.0, server.0],
            meters: [client.1, server.1],
            ots: [client_ot, server_ot],
            transcript,
        }
    }

    fn check(self, inputs: &[Input; 2], seed: u64) {
        let [a, b] = self.run(inputs, seed).outputs;
        let ring = mask(self.bits());
        assert!(a.iter().chain(&b).all(|share| share & !ring == 0));
        let joined = a.iter().zip(&b).map(|(a, b)| a.wrapping_add(*b) & ring);
        assert_eq!(
            joined.collect::<Vec<_>>(),
            self.expected(inputs),
            "{self:?}"
        );
    }
}

/// Every shift, and every pair of its shares.
#[test]
fn every_shift() {
    for log_len in 1..=4 {
        let n = 1u64 << log_len;
        for (bits, shift) in [1, 8, 13, 32, 64]
            .into_iter()
            .zip(SHIFTS.into_iter().cycle())
        {
            for shift in [shift, Shift::Shared] {
                let case = rotate(log_len, bits, shift);
                let batch = (n * n) as usize;
                let mut inputs = case.inputs(batch, 3);
                if !inputs[0].secrets.is_empty() {
                    inputs[0].secrets = (0..n * n).map(|p| p / n).collect();
                }
                if !inputs[1].secrets.is_empty() {
                    inputs[1].secrets = (0..n * n).map(|p| p % n).collect();
                }
                case.check(&inputs, 5);
            }
        }
    }
}

/// Every permutation of four elements.
#[test]
fn every_permutation_of_4() {
    let all: Vec<u64> = (0..256u64)
        .map(|p| [p & 3, p >> 2 & 3, p >> 4 & 3, p >> 6])
        .filter(|p| (0..4).all(|place| p.contains(&place)))
        .flatten()
        .collect();
    assert_eq!(all.len(), 4 * 24);
    for (at, holder) in [Role::Client, Role::Server].into_iter().enumerate() {
        for method in METHODS {
            let case = permute(4, 16, holder, method);
            let mut inputs = case.inputs(24, 1);
            inputs[at].secrets = all.clone();
            case.check(&inputs, 1);
        }
    }
}

#[test]
fn longer_vectors_and_several_chunks() {
    for case in kinds(8, 256, 64) {
        case.check(&case.inputs(70, 1), 2);
    }
    for case in kinds(2, 3, 5) {
        case.check(&case.inputs(9000, 1), 2);
    }
    for case in kinds(11, 1024, 33) {
        case.check(&case.inputs(2, 1), 2);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_shape(
        log_len in 1u32..=7,
        len in 2usize..100,
        bits in 1u32..=64,
        batch in 1usize..20,
        seed in 0..u64::MAX / 4,
    ) {
        for case in kinds(log_len, len, bits) {
            case.check(&case.inputs(batch, seed), seed);
        }
    }
}

#[test]
fn cost_is_what_the_meter_counts() {
    let check = |case: Case, batch| {
        let run = case.run(&case.inputs(batch, 1), 9);
        let (cost, what) = (case.cost(batch), format!("{batch} of {case:?}"));
        super::cost::check_meters(&run.meters, &cost, &what);
        super::cost::check_ots(&run.ots, &cost, &what);
    };
    for (log_len, len) in [(1, 2), (2, 3), (3, 8), (5, 21), (8, 256)] {
        for bits in [1, 13, 64] {
            for case in kinds(log_len, len, bits) {
                check(case, 1);
                check(case, 21);
            }
        }
    }
    for case in kinds(3, 8, 64) {
        check(case, 5000);
    }
    // More leaves than are kept at a time.
    check(permute(1024, 8, Role::Server, PermuteMethod::Trees), 9);
    check(permute(9000, 16, Role::Client, PermuteMethod::Switches), 5);
}

/// The figures of the documentation, bits a vector at a large batch.
#[test]
fn headline_costs() {
    let bits = |cost: PhasedCost| [cost.prep.bits() / 8000, cost.online.bits() / 8000];
    let held = rotate(8, 64, Shift::Held(Role::Server)).cost(8000);
    assert_eq!(bits(held), [128 * 7, 256 * 64 + 8]);
    assert_eq!((held.prep.rounds, held.online.rounds), (1, 1));
    let shared = rotate(8, 64, Shift::Shared).cost(8000);
    assert_eq!(bits(shared), [2 * 128 * 7, 2 * (256 * 64 + 8)]);
    let permutation = |bits, method| permute(256, bits, Role::Server, method).cost(8000);
    let switches = permutation(8, PermuteMethod::Switches);
    assert_eq!(bits(switches), [3839 * (8 + 1), 256 * (8 + 8)]);
    assert_eq!(switches.prep.cots(), 8000 * 3839);
    let permutation = permutation(64, PermuteMethod::Trees);
    assert_eq!(bits(permutation), [256 * (128 * 7 + 8), 256 * (64 + 8)]);
    assert_eq!(permutation.prep.cots(), 8000 * 256 * 8);
}

#[test]
fn the_method_that_sends_less() {
    let cheapest = |len, bits| PermuteMethod::cheapest(len, bits, Role::Client);
    for (len, bits) in [(4, 64), (16, 64), (256, 8), (1025, 64), (60_000, 1)] {
        assert_eq!(cheapest(len, bits), PermuteMethod::Switches);
    }
    for (len, bits) in [(2, 64), (256, 64), (1024, 64)] {
        assert_eq!(cheapest(len, bits), PermuteMethod::Trees);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let (mut a, mut b) = ideal_pair(1);
    let party = |ch: &mut Channel, ot: &mut Ot| {
        let client = ch.role() == Role::Client;
        let shape = |len, bits| PermuteShape {
            len,
            bits,
            holder: Role::Client,
            method: PermuteMethod::Trees,
        };
        for len in [0, 1, 1025] {
            let refused = Permute::prepare(ch, ot, shape(len, 8), 1);
            assert!(matches!(refused, Err(LutError::VectorSize { .. })));
        }
        let refused = Permute::prepare(ch, ot, shape(4, 65), 1);
        assert!(matches!(refused, Err(LutError::Bits { got: 65 })));
        let refused = Permute::prepare(ch, ot, shape(4, 8), 0);
        assert!(matches!(refused, Err(LutError::EmptyBatch)));
        for log_len in [0, 12, 99] {
            let shape = RotateShape {
                log_len,
                bits: 8,
                shift: Shift::Shared,
            };
            let refused = Rotate::prepare(ch, ot, shape, 1);
            assert!(matches!(refused, Err(LutError::VectorSize { .. })));
        }
        let mut prepare = || Permute::prepare(ch, ot, shape(4, 8), 1).unwrap();
        let [p0, p1, p2] = [prepare(), prepare(), prepare()];
        assert_eq!(p0.len(), 1);
        let wrong: &[u32] = if client { &[0, 1, 2] } else { &[0, 1, 2, 3] };
        let refused = p0.permute(ch, wrong, &[0; 4]);
        assert!(matches!(refused, Err(LutError::SecretCount { .. })));
        let good: &[u32] = if client { &[3, 1, 2, 0] } else { &[] };
        let refused = p1.permute(ch, good, &[0; 5]);
        assert!(matches!(
            refused,
            Err(LutError::VectorLength {
                expected: 4,
                got: 5
            })
        ));
        if client {
            let refused = p2.permute(ch, &[0, 1, 1, 2], &[0; 4]);
            assert!(matches!(
                refused,
                Err(LutError::NotAPermutation { which: 0 })
            ));
        }
    };
    run_pair_recorded(|ch| party(ch, &mut a), |ch| party(ch, &mut b));
}

fn recorded(case: Case, batch: usize) -> [(Role, Vec<u8>); 2] {
    let transcript = case.run(&case.inputs(batch, 1), 21).transcript;
    [
        (Role::Client, transcript.server_sent),
        (Role::Server, transcript.client_sent),
    ]
}

fn against(case: Case, batch: usize, role: Role, script: Vec<u8>) -> Outcome {
    let (client_ot, server_ot) = ideal_pair(21);
    let inputs = case.inputs(batch, 1);
    let (mut ot, input, seed) = match role {
        Role::Client => (client_ot, &inputs[0], 21 ^ 1),
        Role::Server => (server_ot, &inputs[1], 21 ^ 2),
    };
    case.party(&mut scripted(role, script), &mut ot, input, seed)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A peer that stops early, says nonsense, or other values, gives an error or wrong outputs.
    #[test]
    fn hostile_peers(
        kind in 0usize..7,
        log_len in 2u32..=5,
        len in 3usize..40,
        client: bool,
        cut: Pick,
        flips in prop::collection::vec((any::<Pick>(), 1u8..), 1..8),
        garbage in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let case = kinds(log_len, len, 9)[kind];
        let (role, script) = recorded(case, 20)[usize::from(client)].clone();
        prop_assert!(against(case, 20, role, script.clone()).is_ok());
        prop_assert!(against(case, 20, role, script[..cut.index(script.len())].to_vec()).is_err());
        prop_assert!(against(case, 20, role, garbage).is_err());
        prop_assert!(against(case, 40, role, script.clone()).is_err());
        let mut flipped = script;
        for (at, flip) in flips {
            let at = at.index(flipped.len());
            flipped[at] ^= flip;
        }
        let _ = against(case, 20, role, flipped);
    }
}

/// A place outside the vector is an error of its own.
#[test]
fn places_outside_the_vector() {
    let case = permute(3, 8, Role::Server, PermuteMethod::Trees);
    let (role, mut script) = recorded(case, 4)[0].clone();
    let last = script.len() - 1;
    script[last] = 0xff;
    assert!(matches!(
        against(case, 4, role, script),
        Err(LutError::PeerPlace { len: 3, got: 3 })
    ));
}

/// All that is sent online, and all shares that come out, are uniform, whatever the input.
#[test]
fn messages_and_shares_are_uniform() {
    for case in kinds(4, 16, 8) {
        for constant in [0, 77] {
            let batch = 4096;
            let mut inputs = case.inputs(batch, 3);
            for input in &mut inputs {
                input.shares.fill(constant);
                match case {
                    Case::Rotate(_) => input.secrets.fill(3),
                    Case::Permute(_) => {
                        let places = (0..input.secrets.len() as u64).map(|i| 15 - i % 16);
                        input.secrets = places.collect();
                    }
                }
            }
            let (mut client_ot, mut server_ot) = ideal_pair(constant + 1);
            let (client, server, prep) = run_pair_recorded(
                |ch| case.prepare(ch, &mut client_ot, batch, 1).unwrap(),
                |ch| case.prepare(ch, &mut server_ot, batch, 2).unwrap(),
            );
            let (a, b, online) = run_pair_recorded(
                |ch| case.finish(client, ch, &inputs[0]).unwrap(),
                |ch| case.finish(server, ch, &inputs[1]).unwrap(),
            );
            let shares = [a, b].map(|o| o.iter().map(|&s| s as u8).collect::<Vec<u8>>());
            let mut online = [online.client_payload(), online.server_payload()];
            if let Case::Permute(shape) = case {
                // The places in σ differ from each other; where they stand each is uniform.
                let sigma = &mut online[usize::from(shape.holder == Role::Server)];
                let nibbles = sigma.iter().flat_map(|byte| [byte & 15, byte >> 4]);
                *sigma = nibbles
                    .zip((0..16).cycle())
                    .map(|(p, i)| i << 4 | p)
                    .collect();
            }
            let sent = [prep.client_payload(), prep.server_payload()]
                .into_iter()
                .chain(online);
            for bytes in sent.chain(shares).filter(|bytes| !bytes.is_empty()) {
                let chi = chi_square(&bytes);
                assert!(chi < BOUND, "χ² = {chi}, {constant}, {case:?}");
            }
        }
    }
}

#[test]
fn wire_digests() {
    let mut got = Vec::new();
    for (log_len, len, bits) in [(3, 5, 37), (7, 64, 8)] {
        for case in kinds(log_len, len, bits) {
            let transcript = case.run(&case.inputs(20, 11), 13).transcript;
            let digest = super::wire::digest_of(&transcript);
            got.push(format!("{case:?} {digest}"));
        }
    }
    let expected: Vec<&str> = include_str!("wire_vectors.txt").lines().collect();
    assert_eq!(
        got,
        expected,
        "the wire format changed:\n{}",
        got.join("\n")
    );
}
