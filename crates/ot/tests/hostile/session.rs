//! A session of every kind of output, what each party saw of it, and where in its messages a label is.

use std::ops::Range;

use volvelle_net::testing::{Flip, Transcript, run_pair_altered, scripted};
use volvelle_net::{Channel, Label, Role, memory_pair};
use volvelle_ot::testing::setup_seeded;
use volvelle_ot::{CorrelatedBatch, Ot, OtConfig, OtError};
use volvelle_prim::Block;

/// Correlated OTs and random OTs of a session, client to server.
pub const COUNT: usize = 1000;
/// Punctured trees of a session, in two groups, and their depth.
pub const TREES: usize = 11;
pub const DEPTH: u32 = 4;

/// Whether there is such a combination: a party alone gets as far as to wait for its peer.
pub fn supported(config: &OtConfig) -> bool {
    let alone = Ot::setup(&mut scripted(Role::Client, vec![]), *config);
    !matches!(alone, Err(OtError::Unsupported { .. }))
}

/// What a party has been handed.
#[derive(Default)]
pub struct View {
    correlated: Option<CorrelatedBatch>,
    /// Choice (the sender: 9), own pad or zero-pad, one-pad.
    random: Vec<(u8, Block, Block)>,
    /// Point (the sender: none) and rows.
    trees: Vec<(Option<usize>, Vec<Block>)>,
}

/// One party's end of a session.
pub struct End {
    pub done: Result<(), OtError>,
    pub view: View,
    /// If set-up succeeded.
    pub ot: Option<Ot>,
}

pub fn send(ot: &mut Ot, ch: &mut Channel, count: usize) -> Result<(), OtError> {
    let mut zeros = vec![Block::ZERO; count];
    ot.send_random(ch, 1, &mut zeros, &mut vec![Block::ZERO; count])
}

pub fn receive(ot: &mut Ot, ch: &mut Channel, count: usize) -> Result<(), OtError> {
    ot.recv_random(ch, 1, &mut vec![0; count], &mut vec![Block::ZERO; count])
}

impl View {
    fn fill(&mut self, ot: &mut Ot, ch: &mut Channel) -> Result<(), OtError> {
        let client = ch.role() == Role::Client;
        let mut batch = CorrelatedBatch::new(COUNT);
        if client {
            batch.send(ch, ot)?;
        } else {
            batch.receive(ch, ot)?;
        }
        self.correlated = Some(batch);

        let mut choices = vec![9; COUNT];
        let [mut pads, mut ones] = [Block::ZERO; 2].map(|zero| vec![zero; COUNT]);
        if client {
            ot.send_random(ch, 1, &mut pads, &mut ones)?;
        } else {
            ot.recv_random(ch, 1, &mut choices, &mut pads)?;
        }
        self.random = (0..COUNT).map(|i| (choices[i], pads[i], ones[i])).collect();

        let trees = &mut self.trees;
        if client {
            let mut visit = |_, rows: &mut [Block]| trees.push((None, rows.to_vec()));
            ot.send_pprf(ch, DEPTH, 1, TREES, &mut visit)?;
        } else {
            let mut visit = |_, at, rows: &mut [Block]| trees.push((Some(at), rows.to_vec()));
            ot.recv_pprf(ch, DEPTH, 1, TREES, &mut visit)?;
        }
        Ok(ch.flush()?)
    }

    /// What both parties have been handed fits together.
    pub fn fits(&self, server: &Self, what: &str) {
        if let (Some(sent), Some(received)) = (&self.correlated, &server.correlated) {
            assert_eq!(sent.mismatches(received), 0, "{what}: correlated OTs");
        }
        for (sent, received) in self.random.iter().zip(&server.random) {
            let chosen = [sent.1, sent.2][usize::from(received.0)];
            assert!(received.1 == chosen, "{what}: a pad");
        }
        for (full, punctured) in self.trees.iter().zip(&server.trees) {
            for (i, (a, b)) in full.1.iter().zip(&punctured.1).enumerate() {
                assert_eq!(a == b, punctured.0 != Some(i), "{what}: row {i} of a tree");
            }
        }
    }
}

/// Set-up from a seed, then all kinds of outputs with the client as sender.
pub fn end(ch: &mut Channel, config: OtConfig) -> End {
    let mut view = View::default();
    let seed = 40 + u64::from(ch.role() == Role::Server);
    let mut ot = match setup_seeded(ch, config, seed) {
        Ok(ot) => ot,
        Err(error) => {
            let (done, ot) = (Err(error), None);
            return End { done, view, ot };
        }
    };
    let done = view.fill(&mut ot, ch);
    let ot = Some(ot);
    End { done, view, ot }
}

/// Both ends of a session in which a byte may be changed on the way.
pub fn run(config: OtConfig, flip: Option<Flip>) -> ([End; 2], Transcript) {
    let party = |ch: &mut Channel| end(ch, config);
    let (client, server, transcript) = undisturbed(|| run_pair_altered(flip, party, party));
    client.view.fits(&server.view, &format!("{flip:?}"));
    ([client, server], transcript)
}

/// A run in which no party had to wait so long that it gave a sign of life: such a frame moves all that come after it, which
/// are told by their place.
pub fn undisturbed<A, B>(run: impl Fn() -> (A, B, Transcript)) -> (A, B, Transcript) {
    let quiet = |transcript: &Transcript| {
        let frames = [transcript.client_frames(), transcript.server_frames()];
        frames
            .iter()
            .flatten()
            .all(|(_, payload)| !payload.is_empty())
    };
    (0..20)
        .map(|_| run())
        .find(|(.., transcript)| quiet(transcript))
        .unwrap()
}

/// Where in a party's stream the payloads of a label are.
pub fn payloads(transcript: &Transcript, sender: Role, label: &'static str) -> Vec<Range<usize>> {
    let (raw, frames) = match sender {
        Role::Client => (&transcript.client_sent, transcript.client_frames()),
        Role::Server => (&transcript.server_sent, transcript.server_frames()),
    };
    let at = |payload: &[u8]| payload.as_ptr() as usize - raw.as_ptr() as usize;
    let named = frames
        .into_iter()
        .filter(|(hash, _)| *hash == Label::new(label).hash());
    named
        .map(|(_, payload)| at(payload)..at(payload) + payload.len())
        .collect()
}

/// Payload bytes and messages of both directions so far.
pub fn traffic(ch: &Channel) -> [u64; 4] {
    let total = ch.meter().total();
    [
        total.sent,
        total.received,
        total.messages_sent,
        total.messages_received,
    ]
}

/// Whatever is asked of this end, for something or for nothing, it has broken.
pub fn assert_broken(ot: &mut Ot) {
    let mut ch = memory_pair().0;
    let ch = &mut ch;
    let (mut one, mut more) = ([Block::ZERO], [Block::ZERO]);
    let mut results = vec![
        ot.send_random(ch, 1, &mut one, &mut more),
        ot.recv_random(ch, 1, &mut [0], &mut one),
        ot.recv_random(ch, 1, &mut [], &mut []),
        ot.send_pprf(ch, 1, 1, 1, &mut |_, _| panic!("a tree")),
        ot.recv_pprf(ch, 1, 1, 1, &mut |_, _, _| panic!("a tree")),
    ];
    for count in [1, 100_000] {
        results.push(CorrelatedBatch::new(count).send(ch, ot));
        results.push(CorrelatedBatch::new(count).receive(ch, ot));
    }
    for result in results {
        assert!(matches!(result, Err(OtError::Broken)), "{result:?}");
    }
    assert!(one == [Block::ZERO] && more == one, "pads of a broken end");
    assert_eq!(traffic(ch), [0; 4]);
}
