//! The settings table as a JSON Schema, for editors.

use serde_json::{Map, Value as Json, json};

use super::{
    kind::json_in_unit,
    table::{self, NAME_PART, PathSpelling},
    typed::TypedSettings,
};

/// Builds the schema of `tribunal.yaml`.
pub(crate) fn settings_schema() -> Json {
    let mut root_schema = section_schema();
    let defaults = TypedSettings::default();
    for spelling in table::every_spelling() {
        // A path with a list in it stands for several properties.
        for path_parts in table::expand_path(spelling.path) {
            insert_schema(&mut root_schema, &path_parts, leaf_schema(&spelling, &defaults));
        }
    }
    // The block `review_loop` may also be written under `automation`.
    let review_loop_schema = root_schema["properties"]["review_loop"].clone();
    root_schema["properties"]["automation"]["properties"]["review_loop"] = review_loop_schema;
    root_schema["type"] = json!("object");
    root_schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root_schema["title"] = json!("Tribunal settings (tribunal.yaml)");
    root_schema
}

/// The schema of a section. `null` is allowed, because all keys of a section may be commented out.
fn section_schema() -> Json {
    json!({ "type": ["object", "null"], "properties": {}, "additionalProperties": false })
}

/// The schema of one setting.
fn leaf_schema(spelling: &PathSpelling, defaults: &TypedSettings) -> Json {
    let setting_row = spelling.setting_row;
    let mut description = setting_row.description.to_string();
    // Editors show the description of the spelling that the user typed.
    if spelling.path != setting_row.path {
        description = format!("Same as {}. {description}", setting_row.path);
    }
    if !setting_row.is_used() {
        description.push_str(" (accepted, but not used by this version)");
    }
    let mut value_schema = spelling.kind.json_schema();
    value_schema["description"] = json!(description);
    // An alias in another unit has another default, which is left out.
    if let Some(default_value) = setting_row.default_value(defaults).filter(|_| spelling.kind == setting_row.kind) {
        value_schema["default"] = json_in_unit(setting_row.kind, &default_value);
    }
    value_schema
}

/// Inserts the schema of a setting below its sections.
fn insert_schema(parent_schema: &mut Json, path_parts: &[&str], leaf_json: Json) {
    let Some((first_key, remaining_path)) = path_parts.split_first() else { return };
    let child_schema = if *first_key == NAME_PART {
        // Any name is allowed here, and all of them have the same children.
        let named_children = &mut parent_schema["additionalProperties"];
        if !named_children.is_object() {
            *named_children = self::section_schema();
        }
        named_children
    } else {
        let Some(properties) = parent_schema["properties"].as_object_mut() else { return };
        child_entry(properties, first_key)
    };
    if remaining_path.is_empty() {
        *child_schema = leaf_json;
    } else {
        insert_schema(child_schema, remaining_path, leaf_json);
    }
}

fn child_entry<'a>(properties: &'a mut Map<String, Json>, property_name: &str) -> &'a mut Json {
    properties.entry(property_name).or_insert_with(section_schema)
}
