#include "tests/support/certificates.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <stdexcept>
#include <utility>

namespace kvstore::testing {
namespace {

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

constexpr long kDay = 24L * 3600;

void Check(bool good) {
  if (!good) throw std::runtime_error("cannot make a certificate");
}

Certificate Make(EVP_PKEY* key, const std::string& common_name, long serial, long seconds) {
  Certificate certificate(X509_new(), &X509_free);
  X509_set_version(certificate.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -2 * kDay);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), seconds);
  X509_set_pubkey(certificate.get(), key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1, 0);
  return certificate;
}

void Extend(X509* certificate, X509* issuer, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value);
  Check(extension != nullptr);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

void WriteCertificate(const std::string& file, X509* certificate) {
  std::FILE* out = std::fopen(file.c_str(), "w");
  Check(out != nullptr && PEM_write_X509(out, certificate) == 1);
  std::fclose(out);
}

void WriteKey(const std::string& file, EVP_PKEY* key) {
  std::FILE* out = std::fopen(file.c_str(), "w");
  Check(out != nullptr && PEM_write_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr) == 1);
  std::fclose(out);
}

}  // namespace

struct Authority::Keys {
  Key key{EVP_EC_gen("P-256"), &EVP_PKEY_free};
  Certificate certificate{nullptr, &X509_free};
};

Authority::Authority(std::filesystem::path folder, const std::string& name)
    : folder_(std::move(folder)), name_(name), own_(std::make_unique<Keys>()) {
  own_->certificate = Make(own_->key.get(), name, serial_++, 10 * kDay);
  X509* const own = own_->certificate.get();
  X509_set_issuer_name(own, X509_get_subject_name(own));
  Extend(own, own, NID_basic_constraints, "critical,CA:TRUE");
  Check(X509_sign(own, own_->key.get(), EVP_sha256()) > 0);
  WriteCertificate(file(), own);
}

Authority::~Authority() = default;

std::string Authority::file() const { return (folder_ / (name_ + ".pem")).string(); }

Authority::Files Authority::Issue(const std::string& common_name, int days) {
  const Key key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
  const Certificate certificate = Make(key.get(), common_name, serial_++, days > 0 ? days * kDay : -kDay);
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(own_->certificate.get()));
  Extend(certificate.get(), own_->certificate.get(), NID_subject_alt_name, "IP:127.0.0.1,DNS:localhost");
  Check(X509_sign(certificate.get(), own_->key.get(), EVP_sha256()) > 0);
  const std::string base = (folder_ / (name_ + "-" + std::to_string(serial_))).string();
  Files files{base + ".pem", base + ".key"};
  WriteCertificate(files.cert, certificate.get());
  WriteKey(files.key, key.get());
  return files;
}

}  // namespace kvstore::testing
