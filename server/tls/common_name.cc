#include "server/tls/common_name.h"

#include <openssl/x509.h>

#include <cstddef>
#include <memory>

namespace kvstore::server {

std::string CommonNameOf(const SSL* connection) {
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(SSL_get1_peer_certificate(connection),
                                                                &X509_free);
  if (certificate == nullptr || SSL_get_verify_result(connection) != X509_V_OK) return "";
  const X509_NAME* const subject = X509_get_subject_name(certificate.get());
  const int place = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (place < 0) return "";
  unsigned char* text = nullptr;
  const int size = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, place)));
  if (size < 0) return "";
  std::string name(reinterpret_cast<const char*>(text), static_cast<size_t>(size));
  OPENSSL_free(text);
  return name;
}

}  // namespace kvstore::server
