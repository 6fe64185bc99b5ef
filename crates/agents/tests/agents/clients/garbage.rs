//! Output that is garbled or breaks off anywhere is still decoded, and nothing is made up.

use proptest::prelude::*;
use tribunal_agents::driver::Talk;
use tribunal_core::{client::ClientSpec, settings::DriverSpec};

use super::common::{Ending, decode, events, fixture, session};

const CLAUDE: &[&str] = &["answer", "tools", "background", "status-401", "plan-limit", "max-turns", "go-on"];
const CODEX: &[&str] = &["answer", "write", "patch", "server-denied", "status-401", "usage-limit", "go-on"];

fn outputs() -> impl Strategy<Value = (bool, String)> {
    let of = |claude: bool| {
        let (folder, names) = if claude { ("claude", CLAUDE) } else { ("codex", CODEX) };
        prop::sample::select(names).prop_map(move |name| (claude, fixture(folder, name)))
    };
    prop_oneof![of(true), of(false)]
}

fn driver(claude: bool) -> DriverSpec {
    DriverSpec::Client(ClientSpec::new(if claude { "claude-code" } else { "codex" }))
}

proptest! {
    #[test]
    fn an_output_that_is_cut_garbled_or_shuffled_is_read(
        (claude, output) in outputs(),
        (from, to) in (0.0..1.0f64, 0.0..1.0f64),
        lost in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        code in prop::option::of(prop::sample::select(&[0, 1, 2, 143][..])),
        (went_on, other) in (any::<bool>(), any::<bool>()),
    ) {
        let at = |part: f64| {
            let mut at = (output.len() as f64 * part) as usize;
            while !output.is_char_boundary(at) {
                at += 1;
            }
            at
        };
        let (from, to) = (at(from.min(to)), at(from.max(to)));
        let mut lines: Vec<&str> = output[..from].lines().chain(["… left out …"]).chain(output[to..].lines()).collect();
        for index in lost {
            let (one, last) = (index.index(lines.len()), lines.len() - 1);
            lines.swap(one, last);
        }
        let stdout = lines.join("\n");
        let session = session(1_000, 1_000, 1_000, Some(1.0));
        let talk = if went_on { Talk::GoOn(&session) } else { Talk::New };
        let decoded = decode(driver(claude != other), &Ending { code, stdout: &stdout, stderr: "x", talk });
        // A success is never made up.
        prop_assert!(code.is_none() || decoded.finished || decoded.fault.is_some());
        if let Some(session) = decoded.session {
            prop_assert!(session.total.input_tokens >= decoded.usage.input_tokens);
        }
        for line in stdout.lines() {
            for event in events(&driver(claude), line) {
                prop_assert!(event.shown().is_none_or(|shown| !shown.contains('\n')));
            }
        }
    }
}
