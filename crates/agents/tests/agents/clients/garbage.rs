//! Output that is garbled or breaks off anywhere is still decoded, and nothing is made up.

use proptest::prelude::*;
use tribunal_agents::driver::SessionMode;
use tribunal_workflows::{runs::settings::DriverSpec, tasks::client::ClientSpec};

use super::common::{ProcessEnding, build_session, decode_ending, read_events, read_fixture};

const CLAUDE_FIXTURES: &[&str] = &["answer", "tools", "background", "status-401", "plan-limit", "max-turns", "go-on"];
const CODEX_FIXTURES: &[&str] = &["answer", "write", "patch", "server-denied", "status-401", "usage-limit", "go-on"];

fn any_output() -> impl Strategy<Value = (bool, String)> {
    let fixtures_of = |is_claude: bool| {
        let (fixture_dir, fixture_names) =
            if is_claude { ("claude", CLAUDE_FIXTURES) } else { ("codex", CODEX_FIXTURES) };
        prop::sample::select(fixture_names)
            .prop_map(move |fixture_name| (is_claude, read_fixture(fixture_dir, fixture_name)))
    };
    prop_oneof![fixtures_of(true), fixtures_of(false)]
}

fn build_driver(is_claude: bool) -> DriverSpec {
    DriverSpec::Client(ClientSpec::new(if is_claude { "claude-code" } else { "codex" }))
}

proptest! {
    #[test]
    fn an_output_that_is_cut_garbled_or_shuffled_is_read(
        (claude, output) in any_output(),
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
        let session = build_session(1_000, 1_000, 1_000, Some(1.0));
        let session_mode = if went_on { SessionMode::Resume(&session) } else { SessionMode::New };
        let ending = ProcessEnding { exit_code: code, stdout: &stdout, stderr: "x", session_mode };
        let decoded = decode_ending(build_driver(claude != other), &ending);
        // A success is never made up.
        prop_assert!(code.is_none() || decoded.is_finished || decoded.fault.is_some());
        if let Some(session) = decoded.session {
            prop_assert!(session.total.input_tokens >= decoded.usage.input_tokens);
        }
        for line in stdout.lines() {
            for event in read_events(&build_driver(claude), line) {
                prop_assert!(event.progress_line().is_none_or(|shown| !shown.contains('\n')));
            }
        }
    }
}
