//! The JSON Schema of a scenario, for editors.

use serde_json::{Map, Value as Json, json};

use crate::read::{Presence, Shape, TableSpec, Value};
use crate::sections::Scenario;

/// The schema, as JSON Schema 2020-12.
pub fn json_schema() -> Json {
    let mut definitions = Map::new();
    let mut root = match Scenario::shape() {
        Shape::Table(spec) => object(&spec(), &mut definitions),
        _ => Map::new(),
    };
    let mut schema = Map::new();
    schema.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
    schema.insert("$id".into(), json!("https://plimsoll.invalid/schema/scenario/v1.json"));
    schema.insert("title".into(), json!("Plimsoll scenario"));
    schema.append(&mut root);
    schema.insert("$defs".into(), Json::Object(definitions));
    Json::Object(schema)
}

fn object(spec: &TableSpec, definitions: &mut Map<String, Json>) -> Map<String, Json> {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for key in &spec.keys {
        let mut schema = of(&key.shape, definitions);
        let mut description = sentence(key.doc);
        match key.presence {
            Presence::Required => required.push(json!(key.name)),
            Presence::Default { toml, why } => {
                description
                    .push_str(&format!(" Default: {}, because {why}.", toml.replace('\'', "\"")));
            }
            Presence::Optional { absent } => {
                description.push_str(&format!(" Without it: {absent}."));
            }
        }
        if let Json::Object(map) = &mut schema {
            map.insert("description".into(), json!(description));
        }
        properties.insert(key.name.into(), schema);
    }
    // A profile supplies what a class leaves out, which a schema cannot see.
    let mut map = Map::new();
    map.insert("type".into(), json!("object"));
    map.insert("description".into(), json!(sentence(spec.doc)));
    map.insert("properties".into(), Json::Object(properties));
    if !required.is_empty() {
        map.insert("required".into(), Json::Array(required));
    }
    map.insert("additionalProperties".into(), json!(false));
    map
}

fn of(shape: &Shape, definitions: &mut Map<String, Json>) -> Json {
    match shape {
        Shape::Quantity { noun, examples, bare } => {
            let examples: Vec<&str> = examples.split('`').skip(1).step_by(2).collect();
            let kinds = if *bare { json!(["string", "number"]) } else { json!("string") };
            json!({ "type": kinds, "title": noun, "examples": examples })
        }
        Shape::Integer { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Shape::Number => json!({ "type": "number", "minimum": 0 }),
        Shape::Boolean => json!({ "type": "boolean" }),
        Shape::Text { .. } => json!({ "type": "string" }),
        Shape::Choice(words) => json!({ "enum": words }),
        // TOML dates reach a validator as strings.
        Shape::Moment => json!({ "type": "string", "title": "a date, or a date and time" }),
        Shape::List(inner) => json!({ "type": "array", "items": of(inner, definitions) }),
        Shape::Map(inner) => {
            json!({ "type": "object", "additionalProperties": of(inner, definitions) })
        }
        Shape::Table(spec) => {
            let spec = spec();
            let name = spec.name.replace(['.', ' '], "-");
            if !definitions.contains_key(&name) {
                // Claimed before it is filled, so that a table may hold itself.
                definitions.insert(name.clone(), Json::Null);
                let object = object(&spec, definitions);
                definitions.insert(name.clone(), Json::Object(object));
            }
            json!({ "$ref": format!("#/$defs/{name}") })
        }
        Shape::Either(shapes) => {
            let any: Vec<Json> = shapes.iter().map(|s| of(s, definitions)).collect();
            json!({ "anyOf": any })
        }
        Shape::Any => json!({}),
    }
}

/// A doc comment as one line.
pub(crate) fn sentence(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ")
}
