//! Every kind of invalid request is refused with its status, reason, field and a message that says where, over gRPC, as JSON and
//! to the Rust client, and the server continues to serve. A new check is a new row of `tests/data/refusals.json`: a sound request, the
//! changes of it (of each path, `null` removes), and the refusal.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hlorank_proto::FILE_DESCRIPTOR_SET;
use hlorank_tests::prelude::*;
use prost_reflect::{DescriptorPool, DynamicMessage, MethodDescriptor};
use tonic::client::Grpc;
use tonic_prost::ProstCodec;

use crate::json_calls::curl::call;

/// A sound request of the table: the messages of a stream, or one.
struct Sound {
    method: MethodDescriptor,
    request: Value,
}

impl Sound {
    fn read(entry: &Value) -> Self {
        let (service, method) = text(&entry["call"]).split_once('/').unwrap();
        let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap();
        let service = pool
            .get_service_by_name(&format!("hlorank.v1.{service}"))
            .unwrap();
        let method = service
            .methods()
            .find(|each| each.name() == method)
            .unwrap();
        Self {
            method,
            request: entry["request"].clone(),
        }
    }

    /// Makes the call, and returns the number of answers and the refusal.
    async fn call(&self, server: &TestServer, request: &Value) -> (usize, Option<Status>) {
        let messages = request
            .as_array()
            .map_or(std::slice::from_ref(request), Vec::as_slice);
        let message = |json: &Value| {
            let read = DynamicMessage::deserialize(self.method.input(), expanded(json));
            read.unwrap_or_else(|error| panic!("{error}: {json}"))
        };
        let messages: Vec<DynamicMessage> = messages.iter().map(message).collect();
        let service = self.method.parent_service().full_name();
        let path = format!("/{service}/{}", self.method.name())
            .parse()
            .unwrap();
        // What the answers say does not matter here.
        let codec = ProstCodec::<DynamicMessage, ()>::default();
        let mut client = Grpc::new(server.channel().await);
        client.ready().await.unwrap();
        let messages = Request::new(tokio_stream::iter(messages));
        let mut answers = match client.streaming(messages, path, codec).await {
            Ok(answers) => answers.into_inner(),
            Err(status) => return (0, Some(status)),
        };
        let mut count = 0;
        loop {
            match answers.message().await {
                Ok(Some(())) => count += 1,
                Ok(None) => return (count, None),
                Err(status) => return (count, Some(status)),
            }
        }
    }
}

fn text(json: &Value) -> &str {
    json.as_str().unwrap()
}

/// Writes out what the table abbreviates: HLO text by the lines of its entry computation, bytes by text, bytes or numbers, and long
/// lists.
fn expanded(json: &Value) -> Value {
    let Value::Object(fields) = json else {
        return match json.as_array() {
            Some(list) => list.iter().map(expanded).collect(),
            None => json.clone(),
        };
    };
    let Some((name, value)) = fields.iter().find(|(name, _)| name.starts_with('$')) else {
        let fields = fields
            .iter()
            .map(|(name, value)| (name.clone(), expanded(value)));
        return Value::Object(fields.collect());
    };
    let times = fields
        .get("times")
        .map_or(1, |times| integer(times) as usize);
    let list = || {
        let mut list = vec![value.as_array().unwrap().clone(); times].concat();
        let others = fields.get("but").and_then(Value::as_object);
        for (place, other) in others.into_iter().flatten() {
            list[place.parse::<usize>().unwrap()] = other.clone();
        }
        list
    };
    let bytes: Vec<u8> = match (name.as_str(), value) {
        ("$hlo", _) => {
            let lines: Vec<&str> = value.as_array().unwrap().iter().map(text).collect();
            return format!("HloModule m\n\nENTRY e {{\n  {}\n}}\n", lines.join("\n  ")).into();
        }
        ("$repeated", Value::String(text)) => return text.repeat(times).into(),
        ("$repeated", _) => return list().into(),
        ("$text", _) => text(value).into(),
        ("$bytes", _) => list()
            .iter()
            .map(|byte| u8::try_from(integer(byte)).unwrap())
            .collect(),
        ("$u32", _) => list()
            .iter()
            .flat_map(|number| integer(number).to_le_bytes())
            .collect(),
        ("$f32", _) => list()
            .iter()
            .flat_map(|number| float(number).to_le_bytes())
            .collect(),
        _ => panic!("the table has no {name}"),
    };
    STANDARD.encode(bytes).into()
}

fn integer(json: &Value) -> u32 {
    json.as_u64().unwrap().try_into().unwrap()
}

/// Reads a number, or the name of one that JSON lacks.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the table has single precision where the wire has it"
)]
fn float(json: &Value) -> f32 {
    json.as_f64().unwrap_or_else(|| text(json).parse().unwrap()) as f32
}

/// Changes the value at a path such as `graph.features` or `seconds.1`.
fn change(request: &mut Value, path: &str, value: &Value) {
    let (parent, last) = path.rsplit_once('.').unwrap_or(("", path));
    let pointer = if parent.is_empty() {
        String::new()
    } else {
        format!("/{}", parent.replace('.', "/"))
    };
    match request.pointer_mut(&pointer) {
        _ if path.is_empty() => *request = value.clone(),
        Some(Value::Object(fields)) if value.is_null() => drop(fields.remove(last)),
        Some(Value::Object(fields)) => drop(fields.insert(last.to_owned(), value.clone())),
        Some(Value::Array(items)) => {
            let place = last.parse().unwrap();
            items.splice(
                place..items.len().min(place + 1),
                (!value.is_null()).then(|| value.clone()),
            );
        }
        _ => panic!("the request has no {parent}"),
    }
}

/// Starts a server with these models and a store of measurements, unless the flags say otherwise.
async fn start(folder: &Path, models: &str, flags: &[&str]) -> TestServer {
    fs::create_dir(folder).unwrap();
    let store = store_flag(folder);
    let mut all = [&[models], flags].concat();
    if !flags.iter().any(|flag| flag.starts_with("--measurements")) {
        all.push(&store);
    }
    TestServer::start_with(&all).await
}

/// What a refusal says to programs, and to people.
type Said = (Value, String);

/// Returns what the Rust client makes of a status.
fn said_by(status: Status) -> Said {
    let error = ClientError::from(status);
    let refusal = error.refusal().unwrap();
    assert!(
        refusal.retry_after().is_none(),
        "trying again does not help: {error}"
    );
    let said = json!({"code": error.code_name(), "reason": refusal.reason(), "field": refusal.fields().next()});
    (said, error.to_string())
}

/// Makes the same call with JSON.
async fn said_in_json(server: &TestServer, method: &MethodDescriptor, request: &Value) -> Said {
    let method = format!("{}/{}", method.parent_service().name(), method.name());
    let answered = call(server.endpoint(), &method, &expanded(request).to_string()).await;
    assert!(answered.status >= 400, "{}", answered.body);
    let error = answered.json();
    let code = text(&error["code"]).to_uppercase();
    let said = json!({"code": code, "reason": error["reason"], "field": error["fields"][0]});
    (said, text(&error["message"]).to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_invalid_request_of_the_table_is_refused_in_every_form() {
    let table = fs::read_to_string(fixture("refusals.json")).unwrap();
    let table: Value = serde_json::from_str(&table).unwrap();
    let (folder, models) = (tempfile::tempdir().unwrap(), Artifacts::all());
    // A model of the feature set `loops`.
    FeatureSetModel::of_loops("loops-sum").write(models.folder(), 1);
    let models_flag = models.flag();
    let mut servers: BTreeMap<String, TestServer> = BTreeMap::new();
    let mut wrong = Vec::new();
    for row in table["refusals"].as_array().unwrap() {
        let flags: Vec<&str> = row["flags"]
            .as_array()
            .into_iter()
            .flatten()
            .map(text)
            .collect();
        let key = flags.join(" ");
        if !servers.contains_key(&key) {
            let own = folder.path().join(servers.len().to_string());
            servers.insert(key.clone(), start(&own, &models_flag, &flags).await);
        }
        let server = &servers[&key];
        let sound = Sound::read(&table["requests"][text(&row["of"])]);
        let changes = row["with"].as_object().unwrap();
        let mut request = sound.request.clone();
        for (path, value) in changes {
            change(&mut request, path, value);
        }
        // A server without the feature refuses sound requests too.
        if !changes.is_empty() {
            let (_, refused) = sound.call(server, &sound.request).await;
            assert!(refused.is_none(), "{row}: the sound request: {refused:?}");
        }
        let (answers, refused) = sound.call(server, &request).await;
        let status = refused.unwrap_or_else(|| panic!("{row} is answered"));
        let scored = usize::try_from(row["scored"].as_u64().unwrap_or_default()).unwrap();
        assert_eq!(answers.saturating_sub(1), scored, "{row}");
        let mut forms = vec![said_by(status)];
        if !sound.method.is_client_streaming() {
            forms.push(said_in_json(server, &sound.method, &request).await);
        }
        let code = row["code"].as_str().unwrap_or("INVALID_ARGUMENT");
        let expected = json!({"code": code, "reason": row["reason"], "field": row["field"]});
        let words: Vec<&str> = row["words"].as_array().unwrap().iter().map(text).collect();
        for (said, message) in forms {
            if said != expected || !words.iter().all(|word| message.contains(word)) {
                wrong.push(format!("{row}\n  is {said}: {message}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for server in servers.values() {
        let invalid = [("reason", "MODEL_OUTPUT_INVALID")];
        let scrape = server.scrape().await;
        assert_eq!(scrape.value("hlorank_errors_total", &invalid), 0.0);
    }
}
