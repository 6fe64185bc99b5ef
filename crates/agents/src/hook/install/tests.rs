use proptest::prelude::*;

use super::*;
use crate::{clients::hooks::event_name, hook::client::hook_client};

fn claude() -> HookClient {
    hook_client("claude-code")
}

fn here() -> Program {
    Program::Named
}

fn installed(text: Option<&str>) -> Set {
    set(claude(), text, &here(), &[]).unwrap()
}

#[test]
fn a_client_without_settings_gets_a_file_with_nothing_else_in_it() {
    for client in ["claude-code", "codex"].map(hook_client) {
        let new = set(client, None, &here(), &[]).unwrap();
        assert_eq!(new.added.len(), 8);
        assert_eq!(new.text, format!("{}\n", whole(client, &here())));
        assert_eq!(clear(client, &new.text).unwrap(), Cleared { text: None, removed: 8 });
    }
    insta::assert_snapshot!(
        HookClient::all()
            .map(|client| {
                let short = moments(client).iter().map(|(_, name)| *name).collect::<Vec<_>>().join(" ");
                let whole = whole(client, &Program::At("/opt/my tools/tribunal".into()));
                let end = whole
                    .find("\"command\"")
                    .or(whole.find("\"bash\""))
                    .and_then(|at| Some(at + whole[at..].find('}')?));
                format!(
                    "{} in {:?}: {short}\n{}\n",
                    client.word(),
                    client.hooks.home(false),
                    &whole[..end.unwrap()]
                )
            })
            .collect::<String>()
    );
}

#[test]
fn what_others_have_set_stays() {
    let text = "{\n    // mine\n    \"model\": \"opus\",\n    \"hooks\": {\n        \"Stop\": [\n            {\n                \
                \"hooks\": [\n                    { \"type\": \"command\", \"command\": \"say done\" }\n                ]\n            \
                }\n        ],\n        \"Notification\": []\n    }\n}\n";
    let new = installed(Some(text));
    assert_eq!(new.added.len(), 8);
    assert_eq!(new.loose.unwrap().to_string(), "2:5: a comment");
    let before_stop = text.split("            }\n        ],").next().unwrap();
    assert!(new.text.starts_with(before_stop), "{}", new.text);
    insta::assert_snapshot!(&new.text[..900]);
    assert_eq!(clear(claude(), &new.text).unwrap().text.unwrap(), text);
}

#[test]
fn what_is_there_is_left_and_another_path_is_brought_up_to_date() {
    let first = installed(None).text;
    let again = installed(Some(&first));
    assert_eq!((again.text.as_str(), again.added.len(), again.updated.len()), (first.as_str(), 0, 0));
    // The user may set a longer timeout, and may move the hook into another group.
    let patient = first.replacen("\"timeout\": 10", "\"timeout\": 60", 1);
    assert_eq!(installed(Some(&patient)).text, patient);

    let moved = set(claude(), Some(&first), &Program::At("/opt/tribunal".into()), &[]).unwrap();
    assert_eq!((moved.added.len(), moved.updated.len()), (0, 8));
    assert_eq!(moved.text, first.replace("tribunal hook", "/opt/tribunal hook"));
    assert_eq!(present(claude(), &moved.text).unwrap().len(), 8);
    assert_eq!(installed(Some(&moved.text)).text, first);

    let elsewhere = set(claude(), None, &here(), &HookEvent::ALL).unwrap();
    assert_eq!(elsewhere.text, "{}\n", "the other file of the client has them");
}

#[test]
fn ours_go_and_those_beside_them_stay() {
    let text = concat!(
        r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "a"}, {"command": "/x/tribunal hook stop"}]}, "#,
        r#"{"matcher": "", "hooks": [{"command": "tribunal hook stop --client claude-code"}]}], "#,
        r#""PreToolUse": [{"hooks": [{"command": "tribunal hook pre-tool-use"}]}], "PreCompact": []}}"#
    );
    let cleared = clear(claude(), text).unwrap();
    let left = r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "a"}]}], "PreCompact": []}}"#;
    assert_eq!(cleared, Cleared { text: Some(left.into()), removed: 3 });
    assert_eq!(clear(claude(), left).unwrap(), Cleared { text: Some(left.into()), removed: 0 });
    assert_eq!(clear(claude(), "{}").unwrap().text.as_deref(), Some("{}"), "it was empty before");
    let ours = r#"{"hooks": {"Stop": [{"hooks": [{"command": "tribunal hook stop"}]}]}, "a": 1}"#;
    assert_eq!(clear(claude(), ours).unwrap().text.unwrap(), r#"{"a": 1}"#);
}

#[test]
fn a_file_that_is_not_as_it_is_known_is_named_with_its_line() {
    for (text, is_ours, expected) in [
        ("[]", false, "1:1: the file is no object"),
        ("{\n  \"hooks\": []\n}", false, "2:12: `hooks` is no object"),
        ("{\"hooks\": {\"Stop\": {}}}", false, "1:20: `hooks.Stop` is no list"),
        ("{\"hooks\": {\"Stop\": [1]}}", false, "1:21: this entry of `hooks.Stop` has no list `hooks`"),
        ("{\"hooks\": {\"Stop\": [{}]}}", false, "1:21: this entry of `hooks.Stop` has no list `hooks`"),
        ("{\"hooks\": {\"Stop\": [{\"hooks\": [\"x\"]}]}}", false, "1:32: this hook of `Stop` is no object"),
        ("{\"hooks\": ", false, "1:11: the file ends in the middle of a value"),
        (
            "{\"hooks\": {\"Stop\": [{\"hooks\": [\n{\"command\": \"tribunal hook stop; date\"}]}]}}",
            true,
            "2:1: Tribunal's hook of `Stop` was changed",
        ),
        (
            "{\"hooks\": {\"PreToolUse\": [{\"hooks\": [\n{\"command\": \"tribunal hook stop\"}]}]}}",
            true,
            "2:1: Tribunal's hook of `PreToolUse` was changed",
        ),
    ] {
        let expected = Trouble {
            problem: match expected.splitn(3, ':').collect::<Vec<_>>().as_slice() {
                [line, column, what] => Problem {
                    line: line.parse().unwrap(),
                    column: column.parse().unwrap(),
                    what: what.trim_start().to_string(),
                },
                _ => unreachable!(),
            },
            is_ours,
        };
        assert_eq!(set(claude(), Some(text), &here(), &[]).unwrap_err(), expected, "{text}");
        assert_eq!(clear(claude(), text).unwrap_err(), expected, "{text}");
    }
}

#[test]
fn what_keeps_hooks_from_running_is_pointed_out() {
    let off = installed(Some("{\n  \"a\": 1,\n  \"disableAllHooks\": true\n}"));
    assert_eq!(off.switched_off, Some(3));
    assert_eq!(installed(Some("{\"disableAllHooks\": false}")).switched_off, None);
}

#[test]
fn a_file_of_our_own_is_ours_as_long_as_nobody_changed_it() {
    let copilot = hook_client("copilot");
    for program in [Program::Named, Program::IfThere, Program::At("/a b/tribunal".into())] {
        let text = whole(copilot, &program);
        assert_eq!(check_own(copilot, &text), Ok(()), "{text}");
        let changed = text.replacen("10", "11", 1);
        assert!(check_own(copilot, &changed).unwrap_err().is_ours);
    }
    assert_eq!(check_own(copilot, "{").unwrap_err().problem.to_string(), "1:1: this { is not closed");
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in r#"(\{|\}|\[|\]|,|:|"hooks"|"Stop"|"command"|"tribunal hook stop"|1|\n| ){0,25}"#) {
        let _ = set(claude(), Some(&text), &here(), &[]);
        let _ = clear(claude(), &text);
    }

    #[test]
    fn set_and_cleared_is_as_before(
        commands in prop::collection::vec("[a-z ]{1,8}", 1..4), event in 0usize..8, spaces in 0usize..5, crlf in any::<bool>()
    ) {
        let hooks: Vec<Tree> =
            commands.iter().map(|command| Tree::map([("command", Tree::text(command))])).collect();
        let name = event_name(HookEvent::ALL[event]);
        let tree = Tree::map([("hooks", Tree::map([(name, Tree::List(vec![Tree::map([("hooks", Tree::List(hooks))])]))]))]);
        let mut text = jsonc::pretty(&tree).replace("  ", &" ".repeat(spaces));
        if crlf { text = text.replace('\n', "\r\n"); }
        let new = installed(Some(&text));
        prop_assert_eq!(new.added.len(), 8);
        prop_assert_eq!(clear(claude(), &new.text).unwrap().text.unwrap(), text);
    }
}
