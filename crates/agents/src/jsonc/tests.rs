use proptest::prelude::*;

use super::*;

fn key(name: &str) -> Step {
    Step::Key(name.to_string())
}

fn change(at: &[Step], what: What) -> Change {
    Change { at: at.to_vec(), what }
}

fn add(at: &[Step], name: &str, value: Tree) -> Change {
    change(at, What::Add(vec![(name.to_string(), value)]))
}

fn one() -> Tree {
    Tree::Number("1".into())
}

#[test]
fn what_json_itself_does_not_have_is_read_and_pointed_out() {
    for (text, loose) in [
        ("{\"a\": [1, -2.5e3, true, null, \"\\u00e9\\ud83d\\ude00\"]}", None),
        ("\u{feff}{ }", None),
        ("{\n  // why\n  \"a\": 1\n}", Some("2:3: a comment")),
        ("{\"a\": 1 /* why */}", Some("1:9: a comment")),
        ("[\r\n1,\r\n]", Some("2:2: a comma before a closing bracket")),
        ("\u{feff}{} // end", Some("1:4: a comment")),
        ("{\"url\": \"http://x/*y*/\"}", None),
    ] {
        let found = read(text).unwrap().loose.map(|problem| problem.to_string());
        assert_eq!(found.as_deref(), loose, "{text}");
    }
}

#[test]
fn what_cannot_be_read_is_named_with_its_place() {
    for (text, problem) in [
        ("", "1:1: the file has no value in it"),
        ("  // nothing\n", "2:1: the file has no value in it"),
        ("{\"a\": 1", "1:1: this { is not closed"),
        ("{\n  \"a\": [1, 2\n}", "3:1: a comma or a closing bracket is missing"),
        ("{\"a\" 1}", "1:6: a colon behind `a` is missing"),
        ("{a: 1}", "1:2: a key in quotes is missing"),
        ("{\"a\": yes}", "1:7: `yes` is no value; texts stand in quotes"),
        ("{\"a\": 'x'}", "1:7: a value is missing"),
        ("{\"a\": 01}", "1:7: this is no number"),
        ("{\"a\": 1.}", "1:7: this is no number"),
        ("{\"a\": \"x\n\"}", "1:7: this text is not closed on its line"),
        ("{\"a\": \"\\x\"}", "1:8: this is no escape that JSON knows"),
        ("{\"a\": \"\\ud83d\"}", "1:8: this escape is no character"),
        ("{\"a\": \"\t\"}", "1:8: a control character stands in a text"),
        ("{\"a\": 1, \"b\": 2,\n \"a\": 3}", "2:2: `a` stands here twice"),
        ("{,}", "1:2: a key in quotes is missing"),
        ("[1,,2]", "1:4: a value is missing"),
        ("{} x", "1:4: there is more behind the end"),
        ("{\"a\": /* 1}", "1:7: a comment is not closed"),
        ("{\"ä\": ?}", "1:7: a value is missing"),
    ] {
        assert_eq!(read(text).unwrap_err().to_string(), problem, "{text}");
    }
    assert!(read(&"[".repeat(100_000)).unwrap_err().what.contains("in one another"));
    assert!(read(&format!("{}{}", "[".repeat(100), "]".repeat(100))).is_ok());
}

#[test]
fn what_is_added_stands_like_its_neighbours() {
    let list = Tree::List(vec![one(), Tree::map([("x", Tree::Flag(true))])]);
    for (text, expected) in [
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
        (
            "{ \"a\": 1 // why\n}",
            "{ \"a\": 1, // why\n  \"k\": [\n    1,\n    {\n      \"x\": true\n    }\n  ]\n}",
        ),
    ] {
        assert_eq!(edit(text, &[add(&[], "k", list.clone())]).unwrap(), expected, "{text}");
    }
}

#[test]
fn what_is_taken_out_takes_its_comma_along_and_no_comment() {
    for (text, gone, expected) in [
        ("{\n  \"a\": 1,\n  \"b\": 2\n}", vec![0], "{\n  \"b\": 2\n}"),
        ("{\n  \"a\": 1,\n  \"b\": 2\n}", vec![1], "{\n  \"a\": 1\n}"),
        ("{\n  \"a\": 1,\n  \"b\": 2,\n}", vec![1], "{\n  \"a\": 1,\n}"),
        ("{\n  \"a\": 1,\n  \"b\": 2\n}", vec![0, 1], "{}"),
        (
            "{\n  // of a\n  \"a\": 1, // also\n  \"b\": 2\n}",
            vec![0],
            "{\n  // of a\n  // also\n  \"b\": 2\n}",
        ),
        ("{ // x\n  \"a\": 1\n}", vec![0], "{ // x\n}"),
        ("{\"a\": 1, \"b\": 2, \"c\": 3}", vec![0], "{\"b\": 2, \"c\": 3}"),
        ("{\"a\": 1, \"b\": 2, \"c\": 3}", vec![1], "{\"a\": 1, \"c\": 3}"),
        ("{\"a\": 1, \"b\": 2, \"c\": 3}", vec![1, 2], "{\"a\": 1}"),
        ("{\n  // x\n  \"a\": 1, \"b\": 2}", vec![0], "{\n  // x\n  \"b\": 2}"),
        ("{\n  \"a\": 1,\n\n  // of b\n  \"b\": 2\n}", vec![1], "{\n  \"a\": 1\n\n  // of b\n}"),
    ] {
        assert_eq!(edit(text, &[change(&[], What::Remove(gone))]).unwrap(), expected, "{text}");
    }
}

#[test]
fn several_changes_are_one_edit() {
    let text = "{\n  \"a\": {\"x\": [1, 2]},\n  \"b\": \"old\", // why\n  \"c\": 3\n}\n";
    let changes = [
        change(&[key("a"), key("x")], What::Push(vec![one()])),
        change(&[key("b")], What::Put(Tree::text("new"))),
        change(&[], What::Remove(vec![2])),
        change(&[key("a")], What::Add(vec![("y".into(), Tree::Null)])),
    ];
    assert_eq!(
        edit(text, &changes).unwrap(),
        "{\n  \"a\": {\"x\": [1, 2, 1], \"y\": null},\n  \"b\": \"new\" // why\n}\n"
    );
}

#[test]
fn what_cannot_be_done_is_refused() {
    let refused = |text: &str, changes: &[Change]| edit(text, changes).unwrap_err();
    assert_eq!(refused("{\"a\": 1}", &[add(&[], "a", one())]), Refusal::Misplaced, "it is there");
    assert_eq!(refused("[1]", &[add(&[], "a", one())]), Refusal::Misplaced);
    assert_eq!(refused("{}", &[change(&[key("a")], What::Put(one()))]), Refusal::Misplaced);
    assert_eq!(refused("[1]", &[change(&[], What::Remove(vec![1]))]), Refusal::Misplaced);
    assert!(matches!(refused("{", &[]), Refusal::Broken(_)));
    let both = [change(&[], What::Remove(vec![0])), change(&[Step::At(0)], What::Put(one()))];
    assert_eq!(refused("[[], 2]", &both), Refusal::Misplaced, "two changes of one place");
}

#[test]
fn ten_megabytes_are_read_at_once() {
    let item = "  \"kéy number\": { \"list\": [1, 2, 3], \"text\": \"a \\\"quoted\\\" one\" }, // note\n";
    let lines: Vec<String> = (0..140_000).map(|at| item.replace("number", &at.to_string())).collect();
    let text = format!("{{\n{}}}", lines.concat());
    assert!(text.len() > 9 << 20);
    let new = edit(&text, &[add(&[], "k", one())]).unwrap();
    assert_eq!(new.len(), text.len() + "\n  \"k\": 1,".len());
}

fn trees() -> impl Strategy<Value = Tree> {
    let word = "[a-zé\"\\\\/* \n{}\\[\\],:]{0,6}";
    let leaf = prop_oneof![
        Just(Tree::Null),
        any::<bool>().prop_map(Tree::Flag),
        (-99i32..99).prop_map(|number| Tree::Number(number.to_string())),
        word.prop_map(Tree::Text),
    ];
    leaf.prop_recursive(4, 40, 4, move |inner| {
        let keyed = prop::collection::btree_map(word, inner.clone(), 0..4);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Tree::List),
            keyed.prop_map(|items| Tree::Map(items.into_iter().collect())),
        ]
    })
}

/// Writes a value as a careless user would: with white space and comments anywhere.
struct Hand<'a> {
    dice: std::iter::Cycle<std::slice::Iter<'a, u8>>,
    out: String,
}

impl Hand<'_> {
    fn space(&mut self) {
        let trivia = ["", "", "", " ", "\n  ", "\r\n\t", "/*{*/", " // [\n", "\n\n", " /* a */ /* b */"];
        let index = usize::from(*self.dice.next().unwrap()) % trivia.len();
        self.out.push_str(trivia[index]);
    }

    fn write(&mut self, tree: &Tree) {
        let (brackets, items): (_, Vec<(Option<&str>, &Tree)>) = match tree {
            Tree::List(items) => (["[", "]"], items.iter().map(|item| (None, item)).collect()),
            Tree::Map(items) => {
                (["{", "}"], items.iter().map(|(key, item)| (Some(key.as_str()), item)).collect())
            }
            plain => return self.out.push_str(&pretty(plain)),
        };
        self.out.push_str(brackets[0]);
        for (index, (key, item)) in items.iter().enumerate() {
            self.space();
            if let Some(key) = key {
                self.out.push_str(&pretty(&Tree::text(*key)));
                self.space();
                self.out.push(':');
                self.space();
            }
            self.write(item);
            self.space();
            if index + 1 < items.len() || self.dice.next().unwrap().is_multiple_of(3) {
                self.out.push(',');
            }
        }
        self.space();
        self.out.push_str(brackets[1]);
    }
}

fn texts() -> impl Strategy<Value = (Tree, String)> {
    (trees(), prop::collection::vec(any::<u8>(), 1..30)).prop_map(|(tree, dice)| {
        let mut hand = Hand { dice: dice.iter().cycle(), out: String::new() };
        hand.space();
        hand.write(&tree);
        hand.space();
        (tree.clone(), hand.out)
    })
}

/// The paths to every list and object.
fn containers(node: &Node) -> Vec<Vec<Step>> {
    if !node.is_list() && !node.is_map() {
        return Vec::new();
    }
    let mut all = vec![Vec::new()];
    for (index, item) in node.items().iter().enumerate() {
        for mut way in containers(&item.value) {
            way.insert(0, Step::At(index));
            all.push(way);
        }
    }
    all
}

fn find<'a>(root: &'a Node, way: &[Step]) -> &'a Node {
    way.iter().fold(root, |node, step| match step {
        Step::At(index) => &node.items()[*index].value,
        Step::Key(key) => node.get(key).unwrap(),
    })
}

fn is_part(part: &str, whole: &str) -> bool {
    let mut whole = whole.chars();
    part.chars().all(|wanted| whole.any(|c| c == wanted))
}

proptest! {
    #[test]
    fn nothing_that_is_read_makes_it_panic(text in "[\\[\\]{},:\"\\\\/*u0-9a-e\n é.-]{0,40}") {
        if let Ok(document) = read(&text) {
            prop_assert_eq!(read(&pretty(&document.root.tree())).unwrap().root.tree(), document.root.tree());
        }
    }

    #[test]
    fn a_text_that_is_cut_off_anywhere_does_not_either((_, text) in texts(), cut in any::<prop::sample::Index>()) {
        let cuts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        if !cuts.is_empty() {
            let _ = read(&text[..*cut.get(&cuts)]);
        }
    }

    #[test]
    fn what_was_written_is_read((tree, text) in texts()) {
        prop_assert_eq!(read(&text).unwrap().root.tree(), tree);
    }

    #[test]
    fn what_was_added_can_be_taken_out_and_everything_is_as_before(
        (_, text) in texts(), which in any::<prop::sample::Index>(), value in trees(), twice in any::<bool>()
    ) {
        let root = read(&text).unwrap().root;
        let ways = containers(&root);
        if ways.is_empty() { return Ok(()); }
        let way = which.get(&ways);
        let node = find(&root, way);
        let count = node.items().len();
        let values = if twice { vec![value.clone(), value.clone()] } else { vec![value.clone()] };
        let what = match node.is_map() {
            true => What::Add(values.into_iter().enumerate().map(|(at, value)| (format!("new {at}"), value)).collect()),
            false => What::Push(values),
        };
        let more = edit(&text, &[change(way, what)]).unwrap();
        let squeezed = text.replace([' ', '\n', '\r', '\t'], "");
        prop_assert!(is_part(&squeezed, &more), "{more}");
        let gone = (count..count + 1 + usize::from(twice)).collect();
        let back = edit(&more, &[change(way, What::Remove(gone))]).unwrap();
        if count > 0 {
            prop_assert_eq!(back, text, "by way of {}", more);
        } else {
            let same = |text: &str| text.replace([' ', '\n', '\r', '\t'], "");
            prop_assert_eq!(same(&back), same(&text), "by way of {}", more);
        }
    }

    #[test]
    fn what_is_taken_out_leaves_every_comment_and_every_other_value(
        (_, text) in texts(), which in any::<prop::sample::Index>(), mask in any::<u8>()
    ) {
        let root = read(&text).unwrap().root;
        let ways = containers(&root);
        if ways.is_empty() { return Ok(()); }
        let way = which.get(&ways);
        let gone: Vec<usize> =
            (0..find(&root, way).items().len()).filter(|index| mask & (1 << index) != 0).collect();
        // A comment between a key and its value is removed with them.
        match edit(&text, &[change(way, What::Remove(gone))]) {
            Ok(less) => prop_assert!(is_part(&less, &text), "{}", less),
            Err(refusal) => prop_assert!(false, "{refusal:?}: {text}"),
        }
    }

    #[test]
    fn an_exchanged_value_changes_nothing_around_it((_, text) in texts(), value in trees()) {
        let root = read(&text).unwrap().root;
        for way in containers(&root) {
            let span = find(&root, &way).span.clone();
            let new = edit(&text, &[change(&way, What::Put(value.clone()))]).unwrap();
            prop_assert!(new.starts_with(&text[..span.start]) && new.ends_with(&text[span.end..]));
        }
    }
}
