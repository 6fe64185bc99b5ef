use proptest::prelude::*;

use super::*;
use crate::{clients::hooks::claude_event_name, hook::client::test_hook_client};

fn claude_client() -> HookClient {
    test_hook_client("claude-code")
}

fn named_program() -> HookProgram {
    HookProgram::ByName
}

fn install_into(file_text: Option<&str>) -> InstalledHooks {
    install_hooks(claude_client(), file_text, &named_program(), &[]).unwrap()
}

#[test]
fn a_client_without_settings_gets_a_file_with_nothing_else_in_it() {
    for known_client in ["claude-code", "codex"].map(test_hook_client) {
        let installed_hooks = install_hooks(known_client, None, &named_program(), &[]).unwrap();
        assert_eq!(installed_hooks.added_events.len(), 8);
        assert_eq!(installed_hooks.file_text, format!("{}\n", render_hook_file(known_client, &named_program())));
        assert_eq!(
            uninstall_hooks(known_client, &installed_hooks.file_text).unwrap(),
            UninstalledHooks { remaining_text: None, removed_count: 8 }
        );
    }
    insta::assert_snapshot!(
        HookClient::all()
            .map(|client| {
                let short = supported_events(client).iter().map(|(_, name)| *name).collect::<Vec<_>>().join(" ");
                let whole = render_hook_file(client, &HookProgram::ByPath("/opt/my tools/tribunal".into()));
                let end = whole
                    .find("\"command\"")
                    .or(whole.find("\"bash\""))
                    .and_then(|at| Some(at + whole[at..].find('}')?));
                format!(
                    "{} in {:?}: {short}\n{}\n",
                    client.client_id(),
                    client.hooks.hook_file(false),
                    &whole[..end.unwrap()]
                )
            })
            .collect::<String>()
    );
}

#[test]
fn what_others_have_set_stays() {
    let file_text = "{\n    // mine\n    \"model\": \"opus\",\n    \"hooks\": {\n        \"Stop\": [\n            {\n                \
                \"hooks\": [\n                    { \"type\": \"command\", \"command\": \"say done\" }\n                ]\n            \
                }\n        ],\n        \"Notification\": []\n    }\n}\n";
    let installed_hooks = install_into(Some(file_text));
    assert_eq!(installed_hooks.added_events.len(), 8);
    assert_eq!(installed_hooks.non_json.unwrap().to_string(), "2:5: comment");
    let text_before_stop = file_text.split("            }\n        ],").next().unwrap();
    assert!(installed_hooks.file_text.starts_with(text_before_stop), "{}", installed_hooks.file_text);
    insta::assert_snapshot!(&installed_hooks.file_text[..900]);
    assert_eq!(
        uninstall_hooks(claude_client(), &installed_hooks.file_text).unwrap().remaining_text.unwrap(),
        file_text
    );
}

#[test]
fn present_hooks_are_left_and_another_path_is_updated() {
    let first_text = install_into(None).file_text;
    let second_install = install_into(Some(&first_text));
    assert_eq!(
        (second_install.file_text.as_str(), second_install.added_events.len(), second_install.updated_events.len()),
        (first_text.as_str(), 0, 0)
    );
    // The user may set a longer timeout.
    let longer_timeout = first_text.replacen("\"timeout\": 10", "\"timeout\": 60", 1);
    assert_eq!(install_into(Some(&longer_timeout)).file_text, longer_timeout);

    let moved_install =
        install_hooks(claude_client(), Some(&first_text), &HookProgram::ByPath("/opt/tribunal".into()), &[]).unwrap();
    assert_eq!((moved_install.added_events.len(), moved_install.updated_events.len()), (0, 8));
    assert_eq!(moved_install.file_text, first_text.replace("tribunal hook", "/opt/tribunal hook"));
    assert_eq!(installed_events(claude_client(), &moved_install.file_text).unwrap().len(), 8);
    assert_eq!(install_into(Some(&moved_install.file_text)).file_text, first_text);

    let nothing_to_install = install_hooks(claude_client(), None, &named_program(), &HookEvent::ALL).unwrap();
    assert_eq!(nothing_to_install.file_text, "{}\n", "the other file of the client has them");
}

#[test]
fn own_hooks_are_removed_and_their_neighbours_stay() {
    let file_text = concat!(
        r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "a"}, {"command": "/x/tribunal hook stop"}]}, "#,
        r#"{"matcher": "", "hooks": [{"command": "tribunal hook stop --client claude-code"}]}], "#,
        r#""PreToolUse": [{"hooks": [{"command": "tribunal hook pre-tool-use"}]}], "PreCompact": []}}"#
    );
    let uninstalled = uninstall_hooks(claude_client(), file_text).unwrap();
    let left_text = r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "a"}]}], "PreCompact": []}}"#;
    assert_eq!(uninstalled, UninstalledHooks { remaining_text: Some(left_text.into()), removed_count: 3 });
    assert_eq!(
        uninstall_hooks(claude_client(), left_text).unwrap(),
        UninstalledHooks { remaining_text: Some(left_text.into()), removed_count: 0 }
    );
    assert_eq!(
        uninstall_hooks(claude_client(), "{}").unwrap().remaining_text.as_deref(),
        Some("{}"),
        "it was empty before"
    );
    let own_only = r#"{"hooks": {"Stop": [{"hooks": [{"command": "tribunal hook stop"}]}]}, "a": 1}"#;
    assert_eq!(uninstall_hooks(claude_client(), own_only).unwrap().remaining_text.unwrap(), r#"{"a": 1}"#);
}

#[test]
fn a_file_of_an_unknown_form_is_reported_with_its_line() {
    for (file_text, is_ours, expected_problem) in [
        ("[]", false, "1:1: expected a JSON object"),
        ("{\n  \"hooks\": []\n}", false, "2:12: `hooks` is not an object"),
        ("{\"hooks\": {\"Stop\": {}}}", false, "1:20: `hooks.Stop` is not an array"),
        ("{\"hooks\": {\"Stop\": [1]}}", false, "1:21: this entry of `hooks.Stop` has no `hooks` array"),
        ("{\"hooks\": {\"Stop\": [{}]}}", false, "1:21: this entry of `hooks.Stop` has no `hooks` array"),
        ("{\"hooks\": {\"Stop\": [{\"hooks\": [\"x\"]}]}}", false, "1:32: this hook for `Stop` is not an object"),
        ("{\"hooks\": ", false, "1:11: unexpected end of file, expected a value"),
        (
            "{\"hooks\": {\"Stop\": [{\"hooks\": [\n{\"command\": \"tribunal hook stop; date\"}]}]}}",
            true,
            "2:1: Tribunal's hook for `Stop` was edited",
        ),
        (
            "{\"hooks\": {\"PreToolUse\": [{\"hooks\": [\n{\"command\": \"tribunal hook stop\"}]}]}}",
            true,
            "2:1: Tribunal's hook for `PreToolUse` was edited",
        ),
    ] {
        let expected_problem = InstallProblem {
            file_problem: match expected_problem.splitn(3, ':').collect::<Vec<_>>().as_slice() {
                [line, column, message] => JsoncProblem {
                    line: line.parse().unwrap(),
                    column: column.parse().unwrap(),
                    message: message.trim_start().to_string(),
                },
                _ => unreachable!(),
            },
            is_ours,
        };
        assert_eq!(
            install_hooks(claude_client(), Some(file_text), &named_program(), &[]).unwrap_err(),
            expected_problem,
            "{file_text}"
        );
        assert_eq!(uninstall_hooks(claude_client(), file_text).unwrap_err(), expected_problem, "{file_text}");
    }
}

#[test]
fn a_switch_that_keeps_hooks_from_running_is_pointed_out() {
    let disabled_hooks = install_into(Some("{\n  \"a\": 1,\n  \"disableAllHooks\": true\n}"));
    assert_eq!(disabled_hooks.disabled_hooks_line, Some(3));
    assert_eq!(install_into(Some("{\"disableAllHooks\": false}")).disabled_hooks_line, None);
}

#[test]
fn an_own_file_is_accepted_until_it_is_edited() {
    let copilot_client = test_hook_client("copilot");
    for hook_program in [HookProgram::ByName, HookProgram::IfInstalled, HookProgram::ByPath("/a b/tribunal".into())] {
        let file_text = render_hook_file(copilot_client, &hook_program);
        assert_eq!(check_own_file(copilot_client, &file_text), Ok(()), "{file_text}");
        let changed_text = file_text.replacen("10", "11", 1);
        assert!(check_own_file(copilot_client, &changed_text).unwrap_err().is_ours);
    }
    assert_eq!(check_own_file(copilot_client, "{").unwrap_err().file_problem.to_string(), "1:1: unclosed `{`");
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in r#"(\{|\}|\[|\]|,|:|"hooks"|"Stop"|"command"|"tribunal hook stop"|1|\n| ){0,25}"#) {
        let _ = install_hooks(claude_client(), Some(&text), &named_program(), &[]);
        let _ = uninstall_hooks(claude_client(), &text);
    }

    #[test]
    fn set_and_cleared_is_as_before(
        commands in prop::collection::vec("[a-z ]{1,8}", 1..4), event in 0usize..8, spaces in 0usize..5, crlf in any::<bool>()
    ) {
        let hooks: Vec<JsoncValue> =
            commands.iter().map(|command| JsoncValue::from_members([("command", JsoncValue::from_text(command))])).collect();
        let name = claude_event_name(HookEvent::ALL[event]);
        let group = JsoncValue::from_members([("hooks", JsoncValue::List(hooks))]);
        let events = JsoncValue::from_members([(name, JsoncValue::List(vec![group]))]);
        let tree = JsoncValue::from_members([("hooks", events)]);
        let mut text = jsonc::render_pretty(&tree).replace("  ", &" ".repeat(spaces));
        if crlf { text = text.replace('\n', "\r\n"); }
        let new = install_into(Some(&text));
        prop_assert_eq!(new.added_events.len(), 8);
        prop_assert_eq!(uninstall_hooks(claude_client(), &new.file_text).unwrap().remaining_text.unwrap(), text);
    }
}
