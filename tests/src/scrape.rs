//! Reads `/metrics` as Prometheus does.

use std::{
    collections::BTreeMap,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
};

/// Metrics of one scrape.
#[derive(Debug, Default)]
pub struct Scrape {
    /// Families by name.
    pub families: BTreeMap<String, ScrapedFamily>,
    /// All series, in the order read.
    pub samples: Vec<Sample>,
}

/// Metadata of a metric.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ScrapedFamily {
    /// `counter`, `gauge` or `histogram`.
    pub kind: String,
    /// Help text.
    pub help: String,
    /// Names of the labels, without `le`.
    pub labels: Vec<String>,
}

/// Sample of one series.
#[derive(Debug)]
pub struct Sample {
    /// Name, with `_bucket`, `_sum` or `_count` for a histogram.
    pub name: String,
    /// Labels, in the order read.
    pub labels: Vec<(String, String)>,
    /// Value.
    pub value: f64,
}

/// Sends a GET request, and returns the whole response.
pub async fn http_answer(address: SocketAddr, path: &str) -> String {
    let path = path.to_owned();
    let answer = tokio::task::spawn_blocking(move || {
        let mut stream = TcpStream::connect(address).expect("it listens");
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    });
    answer.await.expect("no panic")
}

/// Sends a GET request, and returns the status and the body of the response.
pub async fn http_get(address: SocketAddr, path: &str) -> (u16, String) {
    let answer = http_answer(address, path).await;
    let (head, body) = answer.split_once("\r\n\r\n").expect("an HTTP answer");
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .expect("a status");
    (status, body.to_owned())
}

impl Scrape {
    /// Reads Prometheus' text format.
    pub fn parse(text: &str) -> Self {
        let mut scrape = Self::default();
        for line in text.lines().filter(|line| !line.is_empty()) {
            let words: Vec<&str> = line.splitn(4, ' ').collect();
            match words[..] {
                ["#", "HELP", name, help] => help.clone_into(&mut scrape.family(name).help),
                ["#", "TYPE", name, kind] => kind.clone_into(&mut scrape.family(name).kind),
                _ => scrape.samples.push(Sample::parse(line)),
            }
        }
        for sample in &scrape.samples {
            let endings = ["", "_bucket", "_sum", "_count"];
            let names = endings
                .into_iter()
                .filter_map(|ending| sample.name.strip_suffix(ending));
            let found = names
                .into_iter()
                .find(|name| scrape.families.contains_key(*name));
            let family = found
                .and_then(|name| scrape.families.get_mut(name))
                .expect("a metric has a type");
            let labels = sample
                .labels
                .iter()
                .map(|(name, _)| name.clone())
                .filter(|name| name != "le");
            family.labels = labels.collect();
        }
        scrape
    }

    fn family(&mut self, name: &str) -> &mut ScrapedFamily {
        self.families.entry(name.to_owned()).or_default()
    }

    /// Returns the value of the series with this name and these labels in any order.
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let is_wanted = |sample: &&Sample| {
            sample.name == name
                && sample.labels.len() == labels.len()
                && labels
                    .iter()
                    .all(|(name, value)| sample.label(name) == Some(value))
        };
        let sample = self.samples.iter().find(is_wanted);
        sample
            .unwrap_or_else(|| panic!("no series {name} {labels:?}"))
            .value
    }

    /// Returns the sum over all series with this name and, among others, these labels; 0 without any.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let samples = self.samples.iter().filter(|sample| {
            let has = |(label, value): &(&str, &str)| sample.label(label) == Some(value);
            sample.name == name && labels.iter().all(has)
        });
        // A sum of nothing is -0.
        samples.map(|sample| sample.value).sum::<f64>() + 0.0
    }
}

impl Sample {
    fn parse(line: &str) -> Self {
        let (series, value) = line.rsplit_once(' ').expect("a series and its value");
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let labels = labels
            .trim_end_matches('}')
            .split("\",")
            .filter(|label| !label.is_empty());
        let label = |label: &str| {
            let (name, value) = label.split_once("=\"").expect("a label and its value");
            (name.to_owned(), value.trim_end_matches('"').to_owned())
        };
        Self {
            name: name.to_owned(),
            labels: labels.map(label).collect(),
            value: value.parse().expect("a number"),
        }
    }

    /// Returns the value of a label.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels
            .iter()
            .find(|(label, _)| label == name)
            .map(|(_, value)| value.as_str())
    }
}
