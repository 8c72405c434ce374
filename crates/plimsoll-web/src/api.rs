//! The description of the API, in OpenAPI 3.1: made from the routes that are served and the types that are read and written, so that it cannot say anything else.

use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodFilter, MethodRouter, on};
use serde_json::{Map, Value, json};

use crate::app::House;
use crate::failure::ErrorDocument;

/// A type that has a JSON Schema.
pub(crate) trait Described {
    /// Whether a field of this type may be left out.
    const OPTIONAL: bool = false;

    /// The schema. A type with a name puts its own into `named`, and is referred to.
    fn schema(named: &mut Map<String, Value>) -> Value;
}

macro_rules! plain {
    ($($type:ty: $schema:tt,)+) => {
        $(impl Described for $type {
            fn schema(_: &mut Map<String, Value>) -> Value {
                json!($schema)
            }
        })+
    };
}

plain! {
    bool: { "type": "boolean" },
    f64: { "type": "number", "format": "double" },
    u32: { "type": "integer", "format": "int32", "minimum": 0 },
    u64: { "type": "integer", "format": "int64", "minimum": 0 },
    String: { "type": "string" },
    &'static str: { "type": "string" },
    // A document of a study: what is in it, its own `schema` says.
    Value: {},
}

impl<T: Described> Described for Vec<T> {
    fn schema(named: &mut Map<String, Value>) -> Value {
        json!({ "type": "array", "items": T::schema(named) })
    }
}

impl<T: Described> Described for Option<T> {
    const OPTIONAL: bool = true;

    fn schema(named: &mut Map<String, Value>) -> Value {
        let mut schema = T::schema(named);
        match schema.get_mut("type") {
            Some(kind) => *kind = json!([kind, "null"]),
            None => schema = json!({ "oneOf": [{ "type": "null" }, schema] }),
        }
        schema
    }
}

/// Declares a struct, or an enum of words, together with its schema: descriptions are the doc comments.
macro_rules! described {
    (
        $(#[doc = $about:literal])+
        #[derive($($derive:ident),+)]
        $(#[serde($($serde:tt)+)])?
        $vis:vis struct $name:ident {
            $($(#[doc = $doc:literal])+ $field_vis:vis $field:ident: $type:ty,)+
        }
    ) => {
        $(#[doc = $about])+
        #[derive($($derive),+)]
        $(#[serde($($serde)+)])?
        $vis struct $name {
            $($(#[doc = $doc])+ $field_vis $field: $type,)+
        }

        impl $crate::api::Described for $name {
            fn schema(named: &mut serde_json::Map<String, serde_json::Value>) -> serde_json::Value {
                let serde = stringify!($($($serde)+)?);
                let fields = vec![$((
                    stringify!($field),
                    <$type as $crate::api::Described>::OPTIONAL || serde.contains("default"),
                    <$type as $crate::api::Described>::schema(named),
                    concat!($($doc),+),
                )),+];
                let closed = serde.contains("deny_unknown_fields");
                let schema = $crate::api::object(concat!($($about),+), fields, closed);
                $crate::api::refer(named, stringify!($name), schema)
            }
        }
    };
    (
        $(#[doc = $about:literal])+
        #[derive($($derive:ident),+)]
        #[serde(rename_all = "snake_case")]
        $vis:vis enum $name:ident {
            $($(#[doc = $doc:literal])+ $word:ident,)+
        }
    ) => {
        $(#[doc = $about])+
        #[derive($($derive),+)]
        #[serde(rename_all = "snake_case")]
        $vis enum $name {
            $($(#[doc = $doc])+ $word,)+
        }

        impl $crate::api::Described for $name {
            fn schema(named: &mut serde_json::Map<String, serde_json::Value>) -> serde_json::Value {
                let about = concat!($($about),+).trim();
                let words = [$(Self::$word),+];
                let schema = serde_json::json!({ "type": "string", "description": about, "enum": words });
                $crate::api::refer(named, stringify!($name), schema)
            }
        }
    };
}
pub(crate) use described;

/// The schema of an object. A field is its name, whether it may be left out, its schema, and what it is.
pub(crate) fn object(about: &str, fields: Vec<(&str, bool, Value, &str)>, closed: bool) -> Value {
    let required: Vec<&str> =
        fields.iter().filter(|field| !field.1).map(|(name, ..)| *name).collect();
    let properties: Map<String, Value> = fields
        .into_iter()
        .map(|(name, _, mut schema, doc)| {
            schema["description"] = doc.trim().into();
            (name.to_owned(), schema)
        })
        .collect();
    let mut schema =
        json!({ "type": "object", "description": about.trim(), "properties": properties });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    if closed {
        schema["additionalProperties"] = json!(false);
    }
    schema
}

/// Keeps a schema under its name, and refers to it.
pub(crate) fn refer(named: &mut Map<String, Value>, name: &str, schema: Value) -> Value {
    named.insert(name.to_owned(), schema);
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// A method, as it is described and as it is served.
pub(crate) type Verb = (&'static str, MethodFilter);
pub(crate) const GET: Verb = ("get", MethodFilter::GET);
pub(crate) const POST: Verb = ("post", MethodFilter::POST);
pub(crate) const DELETE: Verb = ("delete", MethodFilter::DELETE);

/// A route: what serves it, and how it is described.
pub(crate) struct Endpoint {
    method: &'static str,
    path: &'static str,
    serves: MethodRouter<Arc<House>>,
    operation: Value,
    named: Map<String, Value>,
}

impl Endpoint {
    pub(crate) fn new<T: 'static>(
        (method, filter): Verb,
        path: &'static str,
        name: &str,
        summary: &str,
        handler: impl Handler<T, Arc<House>>,
    ) -> Self {
        let operation = json!({ "operationId": name, "summary": summary, "responses": {} });
        Self { method, path, serves: on(filter, handler), operation, named: Map::new() }
    }

    /// It has a text in its `path`, or in its `query`, where it may be left out.
    pub(crate) fn parameter(mut self, place: &str, name: &str, about: &str) -> Self {
        self.operation["parameters"] = json!([{
            "name": name,
            "in": place,
            "description": about,
            "required": place == "path",
            "schema": { "type": "string" },
        }]);
        self
    }

    /// It takes a document.
    pub(crate) fn asks<T: Described>(mut self) -> Self {
        let schema = T::schema(&mut self.named);
        self.takes("application/json", schema)
    }

    /// It takes a body of a media type.
    pub(crate) fn takes(mut self, kind: &str, schema: Value) -> Self {
        let content = json!({ kind: { "schema": schema } });
        self.operation["requestBody"] = json!({ "content": content, "required": true });
        self
    }

    /// It answers with a document.
    pub(crate) fn answers<T: Described>(mut self, status: &str, about: &str) -> Self {
        let schema = T::schema(&mut self.named);
        self.says(status, about, &[("application/json", schema)])
    }

    /// It answers in one of these media types.
    pub(crate) fn says(mut self, status: &str, about: &str, content: &[(&str, Value)]) -> Self {
        let response = &mut self.operation["responses"][status];
        response["description"] = about.into();
        for (kind, schema) in content {
            response["content"][kind] = json!({ "schema": schema });
        }
        self
    }

    /// It may also answer with an error.
    pub(crate) fn or_fails(self, about: &str) -> Self {
        self.answers::<ErrorDocument>("default", about)
    }
}

/// The routes themselves.
pub(crate) fn router(endpoints: Vec<Endpoint>) -> Router<Arc<House>> {
    endpoints.into_iter().fold(Router::new(), |all, one| all.route(one.path, one.serves))
}

/// What they are.
pub(crate) fn describe(endpoints: &[Endpoint]) -> Value {
    let (mut paths, mut named) = (json!({}), Map::new());
    for one in endpoints {
        paths[one.path][one.method] = one.operation.clone();
        named.extend(one.named.clone());
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Plimsoll",
            "description": "The load line for LLM inference: the studies of the command line, over HTTP. An answer that is not an error is the document that the command prints with `--json`.",
            "license": { "name": env!("CARGO_PKG_LICENSE"), "identifier": env!("CARGO_PKG_LICENSE") },
            "version": env!("CARGO_PKG_VERSION"),
        },
        "paths": paths,
        "components": { "schemas": named },
    })
}
