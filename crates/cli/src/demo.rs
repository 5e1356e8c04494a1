//! `volvelle demo`: a server process with the model and a client process with the images, both on this machine.
//!
//! The two are this same program, started as `volvelle serve` and `volvelle query`, over TLS with certificates
//! made for the occasion. This process alone has both the model and the images, and uses them for one thing: to
//! compare the client's answers with the plaintext models' after the fact.

use std::path::Path;
use std::time::Instant;

use serde::Serialize;

use crate::args::DemoArgs;
use crate::child::{Event, Family};
use crate::digits::fixed::FixedModel;
use crate::digits::float::FloatModel;
use crate::digits::images::{self, Image};
use crate::digits::weights;
use crate::error::CliError;
use crate::progress::Progress;
use crate::report::{PerItem, SessionReport, Setup, bytes, count, print};

/// The model that `tools/train_digits.py` has trained.
const MODEL: &[u8] = include_bytes!("../../../data/digits-mlp.safetensors");
/// The images held out of its training.
const IMAGES: &str = include_str!("../../../data/digits-test.csv");

/// The last line of `volvelle demo --json`.
#[derive(Debug, Serialize)]
struct DemoReport {
    images: usize,
    agree: usize,
    accuracy_private: f64,
    accuracy_fixed: f64,
    accuracy_plain: f64,
    setup: Setup,
    prep: PerItem,
    online: PerItem,
    batches: u64,
    wall_s: f64,
    link: String,
    transport: &'static str,
    protocol: String,
    ahead: bool,
}

/// Runs the demo.
///
/// # Errors
/// If a process cannot be started or fails, or an answer differs from the fixed-point model's.
pub fn run(args: &DemoArgs) -> Result<(), CliError> {
    let start = Instant::now();
    let folder = tempfile::Builder::new()
        .prefix("volvelle-demo-")
        .tempdir()
        .map_err(CliError::Temporary)?;
    let model = folder.path().join("model.safetensors");
    let data = folder.path().join("images.csv");
    std::fs::write(&model, MODEL).map_err(CliError::Temporary)?;
    std::fs::write(&data, first_images(IMAGES, args.images)).map_err(CliError::Temporary)?;
    let images = images::read(&data)?;
    let weights = weights::read(&model)?;

    let family = Family::new(folder);
    let (server, client) = run_processes(args, &family, &model, &data, images.len())?;
    let wall_s = start.elapsed().as_secs_f64();
    family.end();

    let report = compare(args, &images, weights, &server, &client, wall_s)?;
    if args.json {
        print(&serde_json::to_string(&report)?)?;
    } else {
        print(&summary(&report))?;
    }
    if report.agree < report.images {
        return Err(CliError::Wrong {
            wrong: (report.images - report.agree) as u64,
            checked: report.images as u64,
        });
    }
    Ok(())
}

/// Starts both processes and waits for their reports.
fn run_processes(
    args: &DemoArgs,
    family: &Family,
    model: &Path,
    data: &Path,
    images: usize,
) -> Result<(SessionReport, SessionReport), CliError> {
    let folder = model.parent().unwrap_or(Path::new("."));
    let identity = |own: &str, peer: &str| -> Vec<String> {
        if args.plain_tcp {
            return vec!["--plain-tcp".to_owned()];
        }
        let path = |name: String| folder.join(name).display().to_string();
        vec![
            "--identity".to_owned(),
            path(own.to_owned()),
            "--peer-cert".to_owned(),
            path(format!("{peer}.cert.pem")),
        ]
    };
    if !args.plain_tcp {
        for name in ["server", "client"] {
            crate::keygen::generate(folder, name, 1)?;
        }
    }
    let link = args.link.to_string();
    let progress = Progress::new(images as u64, args.json);

    progress.say("starting the server");
    let model = model.display().to_string();
    let batch = args.batch.to_string();
    let both = vec![
        "--batch",
        &batch,
        "--link",
        &link,
        "--protocol",
        args.protocol.name(),
        "--ahead",
        args.ahead.name(),
    ];
    let mut serve = vec![
        "serve",
        "--once",
        "--listen",
        "127.0.0.1:0",
        "--model",
        &model,
    ];
    let server_identity = identity("server", "client");
    serve.extend(both.iter().copied());
    serve.extend(server_identity.iter().map(String::as_str));
    family.start("server", &serve)?;
    let address = loop {
        match family.next_event()? {
            (_, Event::Listening { listening }) => break listening,
            _ => continue,
        }
    };

    progress.say("set-up");
    let data = data.display().to_string();
    let mut query = vec!["query", "--images", &data, "--connect", &address];
    let client_identity = identity("client", "server");
    query.extend(both);
    query.extend(client_identity.iter().map(String::as_str));
    family.start("client", &query)?;

    let (mut server, mut client) = (None, None);
    while server.is_none() || client.is_none() {
        match family.next_event()? {
            (_, Event::Progress { done, phase }) => {
                // They talk to each other, so both have read their keys and data.
                family.remove_folder();
                progress.set(done, &phase);
            }
            ("server", Event::Report(report)) => server = Some(report),
            (_, Event::Report(report)) => client = Some(report),
            (_, Event::Listening { .. }) => {}
        }
    }
    progress.finish();
    match (server, client) {
        (Some(server), Some(client)) => Ok((*server, *client)),
        _ => Err(CliError::Child {
            name: "server",
            reason: "it gave no report".to_owned(),
        }),
    }
}

fn compare(
    args: &DemoArgs,
    images: &[Image],
    weights: weights::Weights,
    server: &SessionReport,
    client: &SessionReport,
    wall_s: f64,
) -> Result<DemoReport, CliError> {
    let fixed = FixedModel::new(&weights)?;
    let float = FloatModel::new(weights);
    let answers = &client.classes;
    if answers.len() != images.len() {
        return Err(CliError::Child {
            name: "client",
            reason: format!(
                "it gave {} answers, expected {}",
                answers.len(),
                images.len()
            ),
        });
    }
    let n = images.len();
    let share = |right: usize| right as f64 / n as f64;
    let right = |classify: &dyn Fn(usize, &Image) -> u8| {
        images
            .iter()
            .enumerate()
            .filter(|(i, image)| image.class == Some(classify(*i, image)))
            .count()
    };
    let costs = SessionReport::slower(server, client);
    Ok(DemoReport {
        images: n,
        agree: images
            .iter()
            .zip(answers)
            .filter(|(image, answer)| fixed.classify(&image.pixels) == **answer)
            .count(),
        accuracy_private: share(right(&|i, _| answers[i])),
        accuracy_fixed: share(right(&|_, image| fixed.classify(&image.pixels))),
        accuracy_plain: share(right(&|_, image| float.classify(&image.pixels))),
        setup: Setup {
            bits: costs.setup.bits,
            ms: costs.setup.us / 1e3,
        },
        prep: costs.prep.per_item(n),
        online: costs.online.per_item(n),
        batches: costs.batches,
        wall_s,
        link: args.link.to_string(),
        transport: if args.plain_tcp { "tcp" } else { "tls" },
        protocol: costs.protocol,
        ahead: costs.ahead,
    })
}

/// The first `count` images of a file, comments kept.
fn first_images(text: &str, count: Option<u32>) -> String {
    let mut left = count.map_or(usize::MAX, |n| n as usize);
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        if !line.starts_with('#') {
            if left == 0 {
                break;
            }
            left -= 1;
        }
        out.push_str(line);
        out.push('\n');
    }
    out
}

fn summary(report: &DemoReport) -> String {
    let n = report.images;
    let percent = |share: f64| format!("{:.2} %", 100.0 * share);
    let phase = |name: &str, cost: &PerItem| {
        format!(
            "  {name:<15}{:>11} {:>13.0} {:>16}",
            bytes(cost.bits / 8.0),
            cost.us,
            cost.rounds
        )
    };
    [
        format!(
            "{n} handwritten digits classified: the server saw no image, the client no weight."
        ),
        String::new(),
        format!(
            "  accuracy, private            {:>9}",
            percent(report.accuracy_private)
        ),
        format!(
            "  accuracy, plaintext (float)  {:>9}",
            percent(report.accuracy_plain)
        ),
        format!(
            "  same answer as the fixed-point model in the clear: {} of {n}",
            report.agree
        ),
        String::new(),
        "  per image            bytes    time in µs   rounds a batch".to_owned(),
        phase("preprocessing", &report.prep),
        phase("online", &report.online),
        String::new(),
        format!(
            "  set-up, once: {}, {:.0} ms; {}; lookups by {}; link {}, {}{}; {:.1} s in all",
            bytes(report.setup.bits / 8.0),
            report.setup.ms,
            count(report.batches as usize, "batch", "batches"),
            report.protocol,
            report.link,
            report.transport,
            if report.ahead { ", OTs made ahead" } else { "" },
            report.wall_s,
        ),
    ]
    .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_data_are_whole_and_the_models_agree() {
        let folder = tempfile::tempdir().unwrap();
        let (model, data) = (folder.path().join("m"), folder.path().join("i"));
        std::fs::write(&model, MODEL).unwrap();
        std::fs::write(&data, IMAGES).unwrap();
        let images = images::read(&data).unwrap();
        assert_eq!(images.len(), 360);
        let weights = weights::read(&model).unwrap();
        let fixed = FixedModel::new(&weights).unwrap();
        let float = FloatModel::new(weights);
        let right = |classify: &dyn Fn(&Image) -> u8| {
            images
                .iter()
                .filter(|i| i.class == Some(classify(i)))
                .count()
        };
        let (fixed_right, float_right) = (
            right(&|i| fixed.classify(&i.pixels)),
            right(&|i| float.classify(&i.pixels)),
        );
        // The script prints 0.9889; the fixed-point model may lose 0.6 points.
        assert_eq!(float_right, 356);
        assert!(
            fixed_right.abs_diff(float_right) <= 2,
            "{fixed_right} {float_right}"
        );
        for image in &images {
            for (a, b) in float
                .scores(&image.pixels)
                .iter()
                .zip(fixed.scores(&image.pixels))
            {
                let b = b as f64 / (1 << 24) as f64;
                assert!((a - b).abs() < 0.05, "{a} {b}");
            }
        }
    }

    #[test]
    fn takes_the_first_images() {
        assert_eq!(first_images("# c\n1\n2\n3\n", Some(2)), "# c\n1\n2\n");
        assert_eq!(first_images("# c\n1\n", None), "# c\n1\n");
    }
}
