//! The model between two parties: the server has the weights, the client the images and, alone, the answers.
//!
//! Batch by batch, in Z_{2^37} (see [`super::fixed`] for the formats):
//!
//! ```text
//!   client: x                server: W1, b1, W2, b2
//!   ⟨h⟩ = W1·x + b1          client knows x, server W1      MatVecClear, 5-bit pixels
//!   ⟨a⟩ = GELU(⟨h⟩)                                         table lookup
//!   ⟨z⟩ = W2·⟨a⟩ + b2        server knows W2                MatVecShared
//!   ⟨c⟩ = argmax ⟨z⟩                                        comparisons
//!   server: its share of c ──▶ client: c                    opened to the client alone
//! ```
//!
//! Everything but the arrows above it is preprocessing: it is done before the batch's images are looked at.
//!
//! Security: semi-honest, as the parts. The server receives masked values and shares only; the client, besides
//! those, its answers. Weights and scores are never opened.

use std::time::Instant;

use volvelle_arith::{MatVecClear, MatVecShared, Matrix, MatrixShape, Ring, Variant};
use volvelle_math::{Argmax, ArgmaxShape, Gelu, GeluPlan};
use volvelle_net::{Channel, Label, Phase, Role};
use volvelle_ot::{Ot, OtConfig, PhasedCost};
use volvelle_prim::pack;

use super::fixed::{FixedModel, RING_BITS, W1_BITS, W2_BITS, gelu_plan};
use super::{CLASSES, HIDDEN, PIXELS};
use crate::error::CliError;
use crate::report::{Cost, SessionReport};

const JOB: Label = Label::new("digits/job");
const CLASS: Label = Label::new("digits/class");

/// Bits of a pixel, 0..16.
const PIXEL_BITS: u32 = 5;
/// Most images of one session.
const MAX_IMAGES: u64 = 1 << 20;

/// Is told how many images are done, and what is being done now.
pub type OnProgress<'a> = &'a mut dyn FnMut(usize, &'static str) -> Result<(), CliError>;

/// What a party knows that the other does not.
#[derive(Clone, Copy)]
enum Secret<'a> {
    Client { images: &'a [[u8; PIXELS]] },
    Server { model: &'a FixedModel },
}

/// The client's part: the classes of its images are in the report.
///
/// # Errors
/// If the connection or a protocol fails.
pub fn query(
    ch: &mut Channel,
    images: &[[u8; PIXELS]],
    batch: usize,
    progress: OnProgress<'_>,
) -> Result<SessionReport, CliError> {
    let count = images.len() as u64;
    check_images(count)?;
    ch.send(JOB, &count.to_le_bytes())?;
    session(ch, Secret::Client { images }, images.len(), batch, progress)
}

/// The server's part.
///
/// # Errors
/// If the connection or a protocol fails, or the client asks for too much.
pub fn serve(
    ch: &mut Channel,
    model: &FixedModel,
    batch: usize,
) -> Result<SessionReport, CliError> {
    let mut count = [0; 8];
    ch.recv(JOB, &mut count)?;
    let count = u64::from_le_bytes(count);
    check_images(count)?;
    session(
        ch,
        Secret::Server { model },
        count as usize,
        batch,
        &mut |_, _| Ok(()),
    )
}

fn check_images(count: u64) -> Result<(), CliError> {
    match count {
        1..=MAX_IMAGES => Ok(()),
        got => Err(CliError::TooMany {
            got,
            max: MAX_IMAGES,
        }),
    }
}

fn session(
    ch: &mut Channel,
    secret: Secret<'_>,
    images: usize,
    batch: usize,
    progress: OnProgress<'_>,
) -> Result<SessionReport, CliError> {
    let start = Instant::now();
    progress(0, "set-up")?;
    let layers = Layers::new(secret)?;
    let mut ot = Ot::setup(ch, OtConfig::for_demand(layers.demand(images, batch)?))?;
    let mut report = SessionReport {
        images: images as u64,
        ..SessionReport::default()
    };
    report.setup = Cost::of(&ch.meter().phase(Phase::Setup));
    for first in (0..images).step_by(batch) {
        let count = batch.min(images - first);
        progress(first, "preprocessing")?;
        let before = ch.meter().clone();
        ch.set_phase(Phase::Preprocessing);
        let prepared = Prepared::new(ch, &mut ot, &layers, count)?;
        progress(first, "online")?;
        ch.set_phase(Phase::Online);
        report.classes.extend(prepared.run(ch, secret, first)?);
        let after = ch.meter();
        let spent = |phase| Cost::of(&(after.phase(phase) - before.phase(phase)));
        report.prep.add_batch(spent(Phase::Preprocessing));
        report.online.add_batch(spent(Phase::Online));
        report.batches += 1;
    }
    progress(images, "done")?;
    report.wall_s = start.elapsed().as_secs_f64();
    Ok(report)
}

/// The layers' public shapes, and at the server their matrices.
struct Layers {
    first: (MatrixShape, Option<Matrix>),
    gelu: GeluPlan,
    second: (MatrixShape, Option<Matrix>),
    argmax: ArgmaxShape,
}

impl Layers {
    fn new(secret: Secret<'_>) -> Result<Self, CliError> {
        let ring = Ring::new(RING_BITS)?;
        let first = MatrixShape {
            rows: HIDDEN,
            cols: PIXELS,
            weight_bits: W1_BITS,
            ring,
        };
        let second = MatrixShape {
            rows: CLASSES,
            cols: HIDDEN,
            weight_bits: W2_BITS,
            ring,
        };
        let (w1, w2) = match secret {
            Secret::Client { .. } => (None, None),
            Secret::Server { model } => (
                Some(Matrix::new(HIDDEN, PIXELS, model.w1.clone())?),
                Some(Matrix::new(CLASSES, HIDDEN, model.w2.clone())?),
            ),
        };
        let argmax = ArgmaxShape {
            ring,
            classes: CLASSES,
            variant: Variant::Cheetah,
        };
        Ok(Self {
            first: (first, w1),
            gelu: gelu_plan()?,
            second: (second, w2),
            argmax,
        })
    }

    /// What a batch sends and uses.
    fn cost(&self, count: usize) -> Result<PhasedCost, CliError> {
        let class_bits = self.argmax.index_ring()?.bits();
        let open = PhasedCost {
            prep: volvelle_ot::Cost::default(),
            online: volvelle_ot::Cost {
                server_bits: 8 * pack::packed_len(count, class_bits) as u64,
                rounds: 1,
                ..volvelle_ot::Cost::default()
            },
        };
        Ok(MatVecClear::cost(&self.first.0, PIXEL_BITS, count)?
            .then(Gelu::cost(&self.gelu, count * HIDDEN)?)
            .then(MatVecShared::cost(&self.second.0, count)?)
            .then(Argmax::cost(&self.argmax, count)?)
            .then(open))
    }

    /// OTs that the direction in more demand uses in a session, about.
    fn demand(&self, images: usize, batch: usize) -> Result<u64, CliError> {
        let cost = self.cost(batch.min(images))?.total();
        Ok(cost.cots_client.max(cost.cots_server) * images.div_ceil(batch) as u64)
    }
}

/// One party's preprocessing of a batch.
struct Prepared {
    /// Of the numbers.
    ring: Ring,
    /// Of the classes.
    class_ring: Ring,
    count: usize,
    first: MatVecClear,
    gelu: Gelu,
    second: MatVecShared,
    argmax: Argmax,
}

impl Prepared {
    fn new(ch: &mut Channel, ot: &mut Ot, layers: &Layers, count: usize) -> Result<Self, CliError> {
        let ((first, w1), (second, w2)) = (&layers.first, &layers.second);
        let (gelu, argmax) = (&layers.gelu, &layers.argmax);
        Ok(Self {
            ring: argmax.ring,
            class_ring: argmax.index_ring()?,
            count,
            first: ch.span("layer 1", |ch| {
                MatVecClear::prepare(ch, ot, first, PIXEL_BITS, w1.as_ref(), count)
            })?,
            gelu: ch.span("gelu", |ch| Gelu::prepare(ch, ot, gelu, count * HIDDEN))?,
            second: ch.span("layer 2", |ch| {
                MatVecShared::prepare(ch, ot, second, w2.as_ref(), count)
            })?,
            argmax: ch.span("argmax", |ch| Argmax::prepare(ch, ot, argmax, count))?,
        })
    }

    /// The online phase: the classes at the client, nothing at the server.
    fn run(
        self,
        ch: &mut Channel,
        secret: Secret<'_>,
        first_image: usize,
    ) -> Result<Vec<u8>, CliError> {
        let Self {
            ring,
            class_ring,
            count,
            ..
        } = self;
        let pixels: Vec<u64> = match secret {
            Secret::Client { images } => images[first_image..][..count]
                .iter()
                .flatten()
                .map(|pixel| u64::from(*pixel))
                .collect(),
            Secret::Server { .. } => Vec::new(),
        };
        let mut hidden = ch.span("layer 1", |ch| self.first.run(ch, &pixels))?;
        add_bias(ring, secret, |model| &model.b1, &mut hidden);
        let active = self.gelu.run(ch, &hidden)?;
        let mut scores = ch.span("layer 2", |ch| self.second.run(ch, &active))?;
        add_bias(ring, secret, |model| &model.b2, &mut scores);
        let classes = self.argmax.run(ch, &scores)?;
        open_to_client(ch, class_ring, &classes)
    }
}

/// Adds the bias to each vector of shares; it is the server's, so the client adds nothing.
fn add_bias(
    ring: Ring,
    secret: Secret<'_>,
    bias: impl Fn(&FixedModel) -> &Vec<i64>,
    shares: &mut [u64],
) {
    if let Secret::Server { model } = secret {
        let bias = bias(model);
        for vector in shares.chunks_exact_mut(bias.len()) {
            for (share, bias) in vector.iter_mut().zip(bias) {
                *share = ring.add(*share, ring.from_signed(*bias));
            }
        }
    }
}

/// Makes the classes public to the client: the server sends its shares and receives nothing.
fn open_to_client(ch: &mut Channel, ring: Ring, shares: &[u64]) -> Result<Vec<u8>, CliError> {
    match ch.role() {
        Role::Server => {
            let mut message = Vec::new();
            pack::pack_append(shares, ring.bits(), &mut message);
            ch.send(CLASS, &message)?;
            ch.flush()?;
            Ok(Vec::new())
        }
        Role::Client => {
            let mut message = vec![0; pack::packed_len(shares.len(), ring.bits())];
            ch.recv(CLASS, &mut message)?;
            let mut theirs = vec![0; shares.len()];
            pack::unpack_into(&message, ring.bits(), &mut theirs);
            Ok(shares
                .iter()
                .zip(&theirs)
                .map(|(own, other)| ring.add(*own, *other) as u8)
                .collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use volvelle_net::testing::{Transcript, run_pair_recorded, scripted};

    use super::*;
    use crate::digits::weights::Weights;

    const BATCH: usize = 3;

    fn model() -> FixedModel {
        let some = |n: usize, step: usize| {
            (0..n)
                .map(|i| ((i * step) % 41) as f32 / 50.0 - 0.4)
                .collect()
        };
        let weights = Weights {
            w1: some(HIDDEN * PIXELS, 7),
            b1: some(HIDDEN, 5),
            w2: some(CLASSES * HIDDEN, 11),
            b2: some(CLASSES, 3),
        };
        FixedModel::new(&weights).unwrap()
    }

    fn images(count: usize) -> Vec<[u8; PIXELS]> {
        (0..count)
            .map(|k| std::array::from_fn(|i| ((i * (k + 3) + k * k) % 17) as u8))
            .collect()
    }

    fn session(count: usize) -> (SessionReport, SessionReport, Vec<(String, u64)>, Transcript) {
        let (model, images) = (model(), images(count));
        let extended = |ch: &Channel| {
            ch.meter()
                .spans()
                .map(|(name, traffic)| (name, traffic.bits()))
                .collect::<Vec<_>>()
        };
        let ((client, spans), server, transcript) = run_pair_recorded(
            |ch| {
                (
                    query(ch, &images, BATCH, &mut |_, _| Ok(())).unwrap(),
                    extended(ch),
                )
            },
            |ch| serve(ch, &model, BATCH).unwrap(),
        );
        (client, server, spans, transcript)
    }

    #[test]
    fn answers_and_costs_are_exact() {
        let (client, server, spans, _) = session(7);
        let wanted: Vec<u8> = images(7)
            .iter()
            .map(|image| model().classify(image))
            .collect();
        assert!(
            wanted.iter().any(|class| *class != wanted[0]),
            "a dull test"
        );
        assert_eq!(client.classes, wanted);
        assert!(server.classes.is_empty());
        assert_eq!((client.batches, server.batches), (3, 3));
        let layers = Layers::new(Secret::Client { images: &[] }).unwrap();
        let costs: Vec<PhasedCost> = [3, 3, 1].iter().map(|n| layers.cost(*n).unwrap()).collect();
        let bits = |part: fn(&PhasedCost) -> u64| costs.iter().map(part).sum::<u64>() as f64;
        let making: u64 = spans
            .iter()
            .filter(|(name, _)| name.ends_with("ot/extend") && !name.starts_with("ot/setup"))
            .map(|(_, bits)| bits)
            .sum();
        for report in [&client, &server] {
            assert_eq!(
                report.prep.bits - making as f64,
                bits(|cost| cost.prep.bits())
            );
            assert_eq!(report.online.bits, bits(|cost| cost.online.bits()));
        }
    }

    #[test]
    fn too_many_images_are_refused() {
        for count in [0, MAX_IMAGES + 1, u64::MAX] {
            let mut frame = 8u32.to_le_bytes().to_vec();
            frame.extend(JOB.hash().to_le_bytes());
            frame.extend(1u32.to_le_bytes());
            frame.extend(count.to_le_bytes());
            let refused = serve(&mut scripted(Role::Server, frame), &model(), BATCH).unwrap_err();
            assert!(
                matches!(refused, CliError::TooMany { got, .. } if got == count),
                "{refused}"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// What the peer sent in another session, cut off somewhere, with some bytes altered.
        #[test]
        fn no_bytes_make_a_party_panic(
            cut in 0.0..1.0f64,
            altered in proptest::collection::vec((0.0..1.0f64, any::<u8>()), 0..4),
        ) {
            thread_local!(static SENT: Transcript = session(2).3);
            let (to_server, to_client) = SENT.with(|t| (t.client_sent.clone(), t.server_sent.clone()));
            for (role, mut bytes) in [(Role::Client, to_client), (Role::Server, to_server)] {
                bytes.truncate((bytes.len() as f64 * cut) as usize);
                for (at, with) in &altered {
                    let at = (bytes.len() as f64 * at) as usize;
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte ^= with;
                    }
                }
                let ch = &mut scripted(role, bytes);
                let result = match role {
                    Role::Client => query(ch, &images(2), BATCH, &mut |_, _| Ok(())),
                    Role::Server => serve(ch, &model(), BATCH),
                };
                prop_assert!(result.is_err());
            }
        }
    }
}
