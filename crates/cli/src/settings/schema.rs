//! The settings table as a JSON Schema, for editors.

use serde_json::{Map, Value as Json, json};

use super::{
    kind::in_its_unit,
    table::{self, NAME, Spelling},
    typed::TypedSettings,
};

/// Builds the schema of `tribunal.yaml`.
pub(crate) fn schema() -> Json {
    let mut root = section();
    let defaults = TypedSettings::default();
    for spelling in table::spellings() {
        // A path with a list in it stands for several properties.
        for path in table::expanded(spelling.path) {
            place(&mut root, &path, leaf(&spelling, &defaults));
        }
    }
    // The block `review_loop` may also be written under `automation`.
    let block = root["properties"]["review_loop"].clone();
    root["properties"]["automation"]["properties"]["review_loop"] = block;
    root["type"] = json!("object");
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!("Settings of Tribunal (tribunal.yaml)");
    root
}

/// The schema of a section. `null` is allowed, because all keys of a section may be commented out.
fn section() -> Json {
    json!({ "type": ["object", "null"], "properties": {}, "additionalProperties": false })
}

/// The schema of one setting.
fn leaf(spelling: &Spelling, defaults: &TypedSettings) -> Json {
    let row = spelling.row;
    let mut about = row.about.to_string();
    // Editors show the description of the spelling that the user typed.
    if spelling.path != row.path {
        about = format!("The same as {}. {about}", row.path);
    }
    if !row.is_used() {
        about.push_str(" (accepted; not used by this version)");
    }
    let mut schema = spelling.kind.schema();
    schema["description"] = json!(about);
    // An alias in another unit has another default, which is left out.
    if let Some(value) = row.default_in(defaults).filter(|_| spelling.kind == row.kind) {
        schema["default"] = in_its_unit(row.kind, &value);
    }
    schema
}

/// Inserts the schema of a setting below its sections.
fn place(section: &mut Json, path: &[&str], leaf: Json) {
    let Some((key, rest)) = path.split_first() else { return };
    let slot = if *key == NAME {
        // Any name is allowed here, and all of them have the same children.
        let others = &mut section["additionalProperties"];
        if !others.is_object() {
            *others = self::section();
        }
        others
    } else {
        let Some(properties) = section["properties"].as_object_mut() else { return };
        entry(properties, key)
    };
    if rest.is_empty() {
        *slot = leaf;
    } else {
        place(slot, rest, leaf);
    }
}

fn entry<'a>(properties: &'a mut Map<String, Json>, key: &str) -> &'a mut Json {
    properties.entry(key).or_insert_with(section)
}
