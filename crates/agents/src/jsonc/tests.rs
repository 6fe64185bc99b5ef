use proptest::prelude::*;

use super::*;

fn key_step(key_name: &str) -> PathStep {
    PathStep::Key(key_name.to_string())
}

fn build_change(path_steps: &[PathStep], jsonc_edit: JsoncEdit) -> JsoncChange {
    JsoncChange { path: path_steps.to_vec(), edit: jsonc_edit }
}

fn build_addition(path_steps: &[PathStep], member_key: &str, member_value: JsoncValue) -> JsoncChange {
    build_change(path_steps, JsoncEdit::AddMembers(vec![(member_key.to_string(), member_value)]))
}

fn number_one() -> JsoncValue {
    JsoncValue::Number("1".into())
}

#[test]
fn extensions_of_json_are_read_and_pointed_out() {
    for (document_text, expected) in [
        ("{\"a\": [1, -2.5e3, true, null, \"\\u00e9\\ud83d\\ude00\"]}", None),
        ("\u{feff}{ }", None),
        ("{\n  // why\n  \"a\": 1\n}", Some("2:3: comment")),
        ("{\"a\": 1 /* why */}", Some("1:9: comment")),
        ("[\r\n1,\r\n]", Some("2:2: trailing comma")),
        ("\u{feff}{} // end", Some("1:4: comment")),
        ("{\"url\": \"http://x/*y*/\"}", None),
    ] {
        let found_extension = read_document(document_text).unwrap().non_json.map(|problem| problem.to_string());
        assert_eq!(found_extension.as_deref(), expected, "{document_text}");
    }
}

#[test]
fn unreadable_text_is_reported_with_its_place() {
    for (document_text, expected_problem) in [
        ("", "1:1: the file has no JSON value"),
        ("  // nothing\n", "2:1: the file has no JSON value"),
        ("{\"a\": 1", "1:1: unclosed `{`"),
        ("{\n  \"a\": [1, 2\n}", "3:1: expected a comma or a closing bracket"),
        ("{\"a\" 1}", "1:6: expected a colon after `a`"),
        ("{a: 1}", "1:2: expected a key in double quotes"),
        ("{\"a\": yes}", "1:7: `yes` is not a JSON value; strings must be in double quotes"),
        ("{\"a\": 'x'}", "1:7: expected a value"),
        ("{\"a\": 01}", "1:7: invalid number"),
        ("{\"a\": 1.}", "1:7: invalid number"),
        ("{\"a\": \"x\n\"}", "1:7: string is not closed on the same line"),
        ("{\"a\": \"\\x\"}", "1:8: invalid escape sequence"),
        ("{\"a\": \"\\ud83d\"}", "1:8: escape sequence is not a valid character"),
        ("{\"a\": \"\t\"}", "1:8: control character in a string"),
        ("{\"a\": 1, \"b\": 2,\n \"a\": 3}", "2:2: duplicate key `a`"),
        ("{,}", "1:2: expected a key in double quotes"),
        ("[1,,2]", "1:4: expected a value"),
        ("{} x", "1:4: unexpected text after the end of the JSON value"),
        ("{\"a\": /* 1}", "1:7: unclosed comment"),
        ("{\"ä\": ?}", "1:7: expected a value"),
    ] {
        assert_eq!(read_document(document_text).unwrap_err().to_string(), expected_problem, "{document_text}");
    }
    assert!(read_document(&"[".repeat(100_000)).unwrap_err().message.contains("levels deep"));
    assert!(read_document(&format!("{}{}", "[".repeat(100), "]".repeat(100))).is_ok());
}

#[test]
fn added_members_are_laid_out_like_their_neighbours() {
    let added_list = JsoncValue::List(vec![number_one(), JsoncValue::from_members([("x", JsoncValue::Flag(true))])]);
    for (document_text, expected) in [
        ("{}", "{\n  \"k\": [\n    1,\n    {\n      \"x\": true\n    }\n  ]\n}"),
        ("{\n}\n", "{\n  \"k\": [\n    1,\n    {\n      \"x\": true\n    }\n  ]\n}\n"),
        (
            "{\n\t\"a\": 1 // why\n}\n",
            "{\n\t\"a\": 1, // why\n\t\"k\": [\n\t\t1,\n\t\t{\n\t\t\t\"x\": true\n\t\t}\n\t]\n}\n",
        ),
        (
            "\u{feff}{\r\n    \"a\": 1,\r\n}",
            "\u{feff}{\r\n    \"a\": 1,\r\n    \"k\": [\r\n        1,\r\n        {\r\n            \"x\": true\r\n        }\r\n    ],\r\n}",
        ),
        ("{\"a\":1}", "{\"a\":1,\"k\":[1,{\"x\":true}]}"),
        ("{\"a\": 1}", "{\"a\": 1, \"k\": [1, {\"x\": true}]}"),
        ("{ \"a\": 1, /* b */ }", "{ \"a\": 1, /* b */ \"k\": [1, {\"x\": true}], }"),
        ("{ \"a\": 1 // why\n}", "{ \"a\": 1, // why\n  \"k\": [\n    1,\n    {\n      \"x\": true\n    }\n  ]\n}"),
    ] {
        assert_eq!(
            edit_document(document_text, &[build_addition(&[], "k", added_list.clone())]).unwrap(),
            expected,
            "{document_text}"
        );
    }
}

#[test]
fn removed_items_take_their_comma_but_no_comment() {
    for (document_text, removed_indexes, expected) in [
        ("{\n  \"a\": 1,\n  \"b\": 2\n}", vec![0], "{\n  \"b\": 2\n}"),
        ("{\n  \"a\": 1,\n  \"b\": 2\n}", vec![1], "{\n  \"a\": 1\n}"),
        ("{\n  \"a\": 1,\n  \"b\": 2,\n}", vec![1], "{\n  \"a\": 1,\n}"),
        ("{\n  \"a\": 1,\n  \"b\": 2\n}", vec![0, 1], "{}"),
        ("{\n  // of a\n  \"a\": 1, // also\n  \"b\": 2\n}", vec![0], "{\n  // of a\n  // also\n  \"b\": 2\n}"),
        ("{ // x\n  \"a\": 1\n}", vec![0], "{ // x\n}"),
        ("{\"a\": 1, \"b\": 2, \"c\": 3}", vec![0], "{\"b\": 2, \"c\": 3}"),
        ("{\"a\": 1, \"b\": 2, \"c\": 3}", vec![1], "{\"a\": 1, \"c\": 3}"),
        ("{\"a\": 1, \"b\": 2, \"c\": 3}", vec![1, 2], "{\"a\": 1}"),
        ("{\n  // x\n  \"a\": 1, \"b\": 2}", vec![0], "{\n  // x\n  \"b\": 2}"),
        ("{\n  \"a\": 1,\n\n  // of b\n  \"b\": 2\n}", vec![1], "{\n  \"a\": 1\n\n  // of b\n}"),
    ] {
        assert_eq!(
            edit_document(document_text, &[build_change(&[], JsoncEdit::RemoveItems(removed_indexes))]).unwrap(),
            expected,
            "{document_text}"
        );
    }
}

#[test]
fn several_changes_are_one_edit() {
    let document_text = "{\n  \"a\": {\"x\": [1, 2]},\n  \"b\": \"old\", // why\n  \"c\": 3\n}\n";
    let jsonc_changes = [
        build_change(&[key_step("a"), key_step("x")], JsoncEdit::AppendItems(vec![number_one()])),
        build_change(&[key_step("b")], JsoncEdit::Replace(JsoncValue::from_text("new"))),
        build_change(&[], JsoncEdit::RemoveItems(vec![2])),
        build_change(&[key_step("a")], JsoncEdit::AddMembers(vec![("y".into(), JsoncValue::Null)])),
    ];
    assert_eq!(
        edit_document(document_text, &jsonc_changes).unwrap(),
        "{\n  \"a\": {\"x\": [1, 2, 1], \"y\": null},\n  \"b\": \"new\" // why\n}\n"
    );
}

#[test]
fn impossible_changes_are_refused() {
    let edit_refusal =
        |document_text: &str, jsonc_changes: &[JsoncChange]| edit_document(document_text, jsonc_changes).unwrap_err();
    assert_eq!(
        edit_refusal("{\"a\": 1}", &[build_addition(&[], "a", number_one())]),
        EditRefusal::Misplaced,
        "it is there"
    );
    assert_eq!(edit_refusal("[1]", &[build_addition(&[], "a", number_one())]), EditRefusal::Misplaced);
    assert_eq!(
        edit_refusal("{}", &[build_change(&[key_step("a")], JsoncEdit::Replace(number_one()))]),
        EditRefusal::Misplaced
    );
    assert_eq!(edit_refusal("[1]", &[build_change(&[], JsoncEdit::RemoveItems(vec![1]))]), EditRefusal::Misplaced);
    assert!(matches!(edit_refusal("{", &[]), EditRefusal::Unreadable(_)));
    let overlapping_changes = [
        build_change(&[], JsoncEdit::RemoveItems(vec![0])),
        build_change(&[PathStep::Index(0)], JsoncEdit::Replace(number_one())),
    ];
    assert_eq!(edit_refusal("[[], 2]", &overlapping_changes), EditRefusal::Misplaced, "two changes of one place");
}

#[test]
fn ten_megabytes_are_read_without_delay() {
    let member_line = "  \"kéy number\": { \"list\": [1, 2, 3], \"text\": \"a \\\"quoted\\\" one\" }, // note\n";
    let member_lines: Vec<String> =
        (0..140_000).map(|member_number| member_line.replace("number", &member_number.to_string())).collect();
    let document_text = format!("{{\n{}}}", member_lines.concat());
    assert!(document_text.len() > 9 << 20);
    let edited_text = edit_document(&document_text, &[build_addition(&[], "k", number_one())]).unwrap();
    assert_eq!(edited_text.len(), document_text.len() + "\n  \"k\": 1,".len());
}

fn any_value() -> impl Strategy<Value = JsoncValue> {
    let word_pattern = "[a-zé\"\\\\/* \n{}\\[\\],:]{0,6}";
    let leaf_value = prop_oneof![
        Just(JsoncValue::Null),
        any::<bool>().prop_map(JsoncValue::Flag),
        (-99i32..99).prop_map(|number| JsoncValue::Number(number.to_string())),
        word_pattern.prop_map(JsoncValue::Text),
    ];
    leaf_value.prop_recursive(4, 40, 4, move |inner_value| {
        let keyed_values = prop::collection::btree_map(word_pattern, inner_value.clone(), 0..4);
        prop_oneof![
            prop::collection::vec(inner_value, 0..4).prop_map(JsoncValue::List),
            keyed_values.prop_map(|items| JsoncValue::Map(items.into_iter().collect())),
        ]
    })
}

/// Writes a value as a careless user would: with white space and comments anywhere.
struct SloppyWriter<'a> {
    random_bytes: std::iter::Cycle<std::slice::Iter<'a, u8>>,
    written_text: String,
}

impl SloppyWriter<'_> {
    fn write_trivia(&mut self) {
        let trivia = ["", "", "", " ", "\n  ", "\r\n\t", "/*{*/", " // [\n", "\n\n", " /* a */ /* b */"];
        let trivia_index = usize::from(*self.random_bytes.next().unwrap()) % trivia.len();
        self.written_text.push_str(trivia[trivia_index]);
    }

    fn write_value(&mut self, written_value: &JsoncValue) {
        let (brackets, child_items): (_, Vec<(Option<&str>, &JsoncValue)>) = match written_value {
            JsoncValue::List(list_items) => {
                (["[", "]"], list_items.iter().map(|child_value| (None, child_value)).collect())
            }
            JsoncValue::Map(members) => (
                ["{", "}"],
                members.iter().map(|(member_key, child_value)| (Some(member_key.as_str()), child_value)).collect(),
            ),
            scalar_value => return self.written_text.push_str(&render_pretty(scalar_value)),
        };
        self.written_text.push_str(brackets[0]);
        for (index, (member_key, child_item)) in child_items.iter().enumerate() {
            self.write_trivia();
            if let Some(member_key) = member_key {
                self.written_text.push_str(&render_pretty(&JsoncValue::from_text(*member_key)));
                self.write_trivia();
                self.written_text.push(':');
                self.write_trivia();
            }
            self.write_value(child_item);
            self.write_trivia();
            if index + 1 < child_items.len() || self.random_bytes.next().unwrap().is_multiple_of(3) {
                self.written_text.push(',');
            }
        }
        self.write_trivia();
        self.written_text.push_str(brackets[1]);
    }
}

fn any_document() -> impl Strategy<Value = (JsoncValue, String)> {
    (any_value(), prop::collection::vec(any::<u8>(), 1..30)).prop_map(|(jsonc_value, random_bytes)| {
        let mut sloppy_writer = SloppyWriter { random_bytes: random_bytes.iter().cycle(), written_text: String::new() };
        sloppy_writer.write_trivia();
        sloppy_writer.write_value(&jsonc_value);
        sloppy_writer.write_trivia();
        (jsonc_value.clone(), sloppy_writer.written_text)
    })
}

/// The paths to every list and object.
fn container_paths(jsonc_node: &JsoncNode) -> Vec<Vec<PathStep>> {
    if !jsonc_node.is_list() && !jsonc_node.is_map() {
        return Vec::new();
    }
    let mut all_paths = vec![Vec::new()];
    for (index, child_item) in jsonc_node.items().iter().enumerate() {
        for mut container_path in container_paths(&child_item.value) {
            container_path.insert(0, PathStep::Index(index));
            all_paths.push(container_path);
        }
    }
    all_paths
}

fn follow_path<'a>(root_node: &'a JsoncNode, path_steps: &[PathStep]) -> &'a JsoncNode {
    path_steps.iter().fold(root_node, |current_node, path_step| match path_step {
        PathStep::Index(index) => &current_node.items()[*index].value,
        PathStep::Key(member_key) => current_node.get(member_key).unwrap(),
    })
}

fn is_subsequence(short_text: &str, long_text: &str) -> bool {
    let mut long_chars = long_text.chars();
    short_text.chars().all(|wanted_char| long_chars.any(|character| character == wanted_char))
}

proptest! {
    #[test]
    fn nothing_that_is_read_makes_it_panic(text in "[\\[\\]{},:\"\\\\/*u0-9a-e\n é.-]{0,40}") {
        if let Ok(document) = read_document(&text) {
            prop_assert_eq!(read_document(&render_pretty(&document.root.to_value())).unwrap().root.to_value(), document.root.to_value());
        }
    }

    #[test]
    fn a_text_that_is_cut_off_anywhere_does_not_either((_, text) in any_document(), cut in any::<prop::sample::Index>()) {
        let cuts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        if !cuts.is_empty() {
            let _ = read_document(&text[..*cut.get(&cuts)]);
        }
    }

    #[test]
    fn what_was_written_is_read((tree, text) in any_document()) {
        prop_assert_eq!(read_document(&text).unwrap().root.to_value(), tree);
    }

    #[test]
    fn what_was_added_can_be_taken_out_and_everything_is_as_before(
        (_, text) in any_document(), which in any::<prop::sample::Index>(), value in any_value(), twice in any::<bool>()
    ) {
        let root = read_document(&text).unwrap().root;
        let ways = container_paths(&root);
        if ways.is_empty() { return Ok(()); }
        let way = which.get(&ways);
        let node = follow_path(&root, way);
        let count = node.items().len();
        let values = if twice { vec![value.clone(), value.clone()] } else { vec![value.clone()] };
        let what = match node.is_map() {
            true => JsoncEdit::AddMembers(values.into_iter().enumerate().map(|(at, value)| (format!("new {at}"), value)).collect()),
            false => JsoncEdit::AppendItems(values),
        };
        let more = edit_document(&text, &[build_change(way, what)]).unwrap();
        let squeezed = text.replace([' ', '\n', '\r', '\t'], "");
        prop_assert!(is_subsequence(&squeezed, &more), "{more}");
        let gone = (count..count + 1 + usize::from(twice)).collect();
        let back = edit_document(&more, &[build_change(way, JsoncEdit::RemoveItems(gone))]).unwrap();
        if count > 0 {
            prop_assert_eq!(back, text, "by way of {}", more);
        } else {
            let same = |text: &str| text.replace([' ', '\n', '\r', '\t'], "");
            prop_assert_eq!(same(&back), same(&text), "by way of {}", more);
        }
    }

    #[test]
    fn what_is_taken_out_leaves_every_comment_and_every_other_value(
        (_, text) in any_document(), which in any::<prop::sample::Index>(), mask in any::<u8>()
    ) {
        let root = read_document(&text).unwrap().root;
        let ways = container_paths(&root);
        if ways.is_empty() { return Ok(()); }
        let way = which.get(&ways);
        let gone: Vec<usize> =
            (0..follow_path(&root, way).items().len()).filter(|index| mask & (1 << index) != 0).collect();
        // A comment between a key and its value is removed with them.
        match edit_document(&text, &[build_change(way, JsoncEdit::RemoveItems(gone))]) {
            Ok(less) => prop_assert!(is_subsequence(&less, &text), "{}", less),
            Err(refusal) => prop_assert!(false, "{refusal:?}: {text}"),
        }
    }

    #[test]
    fn an_exchanged_value_changes_nothing_around_it((_, text) in any_document(), value in any_value()) {
        let root = read_document(&text).unwrap().root;
        for way in container_paths(&root) {
            let span = follow_path(&root, &way).span.clone();
            let new = edit_document(&text, &[build_change(&way, JsoncEdit::Replace(value.clone()))]).unwrap();
            prop_assert!(new.starts_with(&text[..span.start]) && new.ends_with(&text[span.end..]));
        }
    }
}
