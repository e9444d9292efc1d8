//! Server reflection, v1 and v1alpha: descriptors of the services of a listener and of the details of errors. A question that
//! has no answer gets an error of its own, as the protocol has it, and the stream goes on.

use std::{pin::Pin, sync::Arc};

use futures::{Stream, StreamExt as _};
use hlorank_proto::FILE_DESCRIPTOR_SET;
use prost_reflect::{DescriptorError, DescriptorPool, FileDescriptor};
use tonic::{Code, Request, Response, Status, Streaming};
use tonic_reflection::pb;

use super::transport::explained;

/// What can be asked about a listener. Clones share it.
#[derive(Clone)]
pub struct Reflection {
    pool: DescriptorPool,
    services: Arc<[&'static str]>,
}

/// The reflection services, which are listed, too.
const V1: &str = "grpc.reflection.v1.ServerReflection";
const V1ALPHA: &str = "grpc.reflection.v1alpha.ServerReflection";

impl Reflection {
    /// Returns the reflection of a listener with these services.
    pub fn of(services: &[&'static str]) -> Result<Self, DescriptorError> {
        let mut pool = DescriptorPool::new();
        // Clients decode the details of errors by reflection, too.
        // Each set contains the files that its own import; those that are known already are left out.
        for set in [
            FILE_DESCRIPTOR_SET,
            tonic_types::pb::FILE_DESCRIPTOR_SET,
            tonic_health::pb::FILE_DESCRIPTOR_SET,
            pb::v1::FILE_DESCRIPTOR_SET,
            pb::v1alpha::FILE_DESCRIPTOR_SET,
        ] {
            pool.decode_file_descriptor_set(set)?;
        }
        let services = services.iter().copied().chain([V1, V1ALPHA]).collect();
        Ok(Self { pool, services })
    }

    fn file(&self, name: &str) -> Option<FileDescriptor> {
        self.pool.get_file_by_name(name)
    }

    /// Returns the file that declares a service, a message, an enum or an extension, or one of their members.
    fn file_of_symbol(&self, name: &str) -> Option<FileDescriptor> {
        // The pool knows no members, such as methods and fields, by their full names.
        self.declared(name).or_else(|| {
            let (parent, member) = name.rsplit_once('.')?;
            let file = self.declared(parent);
            file.filter(|_| self.has_member(parent, member))
        })
    }

    fn declared(&self, name: &str) -> Option<FileDescriptor> {
        let pool = &self.pool;
        if let Some(service) = pool.get_service_by_name(name) {
            return Some(service.parent_file());
        }
        if let Some(message) = pool.get_message_by_name(name) {
            return Some(message.parent_file());
        }
        if let Some(found) = pool.get_enum_by_name(name) {
            return Some(found.parent_file());
        }
        let extension = pool.get_extension_by_name(name)?;
        Some(extension.parent_file())
    }

    fn has_member(&self, parent: &str, member: &str) -> bool {
        let pool = &self.pool;
        if let Some(message) = pool.get_message_by_name(parent) {
            let mut choices = message.oneofs();
            return message.get_field_by_name(member).is_some()
                || choices.any(|oneof| oneof.name() == member);
        }
        if let Some(found) = pool.get_enum_by_name(parent) {
            return found.get_value_by_name(member).is_some();
        }
        let service = pool.get_service_by_name(parent);
        service.is_some_and(|service| service.methods().any(|method| method.name() == member))
    }

    fn file_of_extension(&self, message: &str, number: i32) -> Option<FileDescriptor> {
        let message = self.pool.get_message_by_name(message)?;
        let extension = message.get_extension(u32::try_from(number).ok()?)?;
        Some(extension.parent_file())
    }

    /// Returns the numbers of the extensions of a message, which almost none has.
    fn extensions(&self, message: &str) -> Option<Vec<i32>> {
        let message = self.pool.get_message_by_name(message)?;
        let numbers = message.extensions().map(|extension| extension.number());
        Some(
            numbers
                .filter_map(|number| i32::try_from(number).ok())
                .collect(),
        )
    }
}

/// Implements a version of the protocol. Both have the same messages, but not the same types.
macro_rules! reflection {
    ($version:ident, $construct:ident) => {
        mod $version {
            use super::*;
            use pb::$version::{
                ErrorResponse, ExtensionNumberResponse, FileDescriptorResponse,
                ListServiceResponse, ServerReflectionRequest, ServerReflectionResponse,
                ServiceResponse,
                server_reflection_request::MessageRequest as Question,
                server_reflection_response::MessageResponse as Answer,
                server_reflection_server::{ServerReflection, ServerReflectionServer},
            };

            impl Reflection {
                /// Returns the service of this version.
                #[must_use]
                pub fn $construct(&self) -> ServerReflectionServer<Self> {
                    ServerReflectionServer::new(self.clone())
                }
            }

            #[tonic::async_trait]
            impl ServerReflection for Reflection {
                type ServerReflectionInfoStream =
                    Pin<Box<dyn Stream<Item = Result<ServerReflectionResponse, Status>> + Send>>;

                async fn server_reflection_info(
                    &self,
                    request: Request<Streaming<ServerReflectionRequest>>,
                ) -> Result<Response<Self::ServerReflectionInfoStream>, Status> {
                    let reflection = self.clone();
                    let answers = request.into_inner().map(move |question| {
                        let question = question.map_err(explained)?;
                        Ok(answer(&reflection, question))
                    });
                    Ok(Response::new(Box::pin(answers)))
                }
            }

            fn answer(
                reflection: &Reflection,
                question: ServerReflectionRequest,
            ) -> ServerReflectionResponse {
                let answer = match &question.message_request {
                    Some(asked) => answer_to(reflection, asked),
                    None => error(
                        Code::InvalidArgument,
                        "message_request is missing".to_owned(),
                    ),
                };
                ServerReflectionResponse {
                    valid_host: question.host.clone(),
                    message_response: Some(answer),
                    original_request: Some(question),
                }
            }

            fn answer_to(reflection: &Reflection, question: &Question) -> Answer {
                match question {
                    Question::FileByFilename(name) => file(reflection.file(name), "file", name),
                    Question::FileContainingSymbol(name) => {
                        file(reflection.file_of_symbol(name), "symbol", name)
                    }
                    Question::FileContainingExtension(asked) => {
                        let message = &asked.containing_type;
                        let number = asked.extension_number;
                        let found = reflection.file_of_extension(message, number);
                        file(found, "extension", &format!("{message}, {number}"))
                    }
                    Question::AllExtensionNumbersOfType(name) => {
                        extensions(reflection.extensions(name), name)
                    }
                    // By the protocol, the text of this question is ignored.
                    Question::ListServices(_) => services(reflection),
                }
            }

            fn extensions(found: Option<Vec<i32>>, message: &str) -> Answer {
                let Some(extension_number) = found else {
                    return not_found("message", message);
                };
                Answer::AllExtensionNumbersResponse(ExtensionNumberResponse {
                    base_type_name: message.to_owned(),
                    extension_number,
                })
            }

            fn services(reflection: &Reflection) -> Answer {
                let service = |name: &&str| ServiceResponse {
                    name: (*name).to_owned(),
                };
                let service = reflection.services.iter().map(service).collect();
                Answer::ListServicesResponse(ListServiceResponse { service })
            }

            fn file(found: Option<FileDescriptor>, kind: &str, name: &str) -> Answer {
                let Some(found) = found else {
                    return not_found(kind, name);
                };
                let file_descriptor_proto = vec![found.encode_to_vec()];
                Answer::FileDescriptorResponse(FileDescriptorResponse {
                    file_descriptor_proto,
                })
            }

            fn not_found(kind: &str, name: &str) -> Answer {
                error(Code::NotFound, format!("the server has no {kind} `{name}`"))
            }

            fn error(code: Code, error_message: String) -> Answer {
                Answer::ErrorResponse(ErrorResponse {
                    error_code: code.into(),
                    error_message,
                })
            }
        }
    };
}

reflection!(v1, v1);
reflection!(v1alpha, v1alpha);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_and_its_imports_are_described() {
        let reflection = Reflection::of(&["hlorank.v1.ModelService"]).unwrap();
        for symbol in [
            "hlorank.v1.CostModelService",
            "hlorank.v1.CostModelService.RankConfigs",
            "hlorank.v1.RankConfigsRequest.top_k",
            "google.rpc.ErrorInfo",
            "google.rpc.ErrorInfo.MetadataEntry",
            "google.rpc.BadRequest.FieldViolation",
            "google.rpc.RetryInfo",
            "google.rpc.RequestInfo",
            "google.rpc.Status",
            "grpc.health.v1.Health",
            V1,
            V1ALPHA,
        ] {
            let file = reflection
                .file_of_symbol(symbol)
                .unwrap_or_else(|| panic!("{symbol}"));
            for import in file.dependencies() {
                assert!(
                    reflection.file(import.name()).is_some(),
                    "{symbol} imports {}",
                    import.name()
                );
            }
        }
        for unknown in [
            "",
            ".",
            "hlorank.v1.Nothing",
            "hlorank.v1.RankConfigsRequest.nothing",
            "google",
        ] {
            assert!(reflection.file_of_symbol(unknown).is_none(), "{unknown}");
        }
    }
}
